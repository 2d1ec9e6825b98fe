"""How reports write names, numbers, tables and lines."""

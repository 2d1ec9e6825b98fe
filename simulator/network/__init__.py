"""How long ranks take to communicate, by operation, message size and number of ranks."""

"""Files and options of a search: axes, goals, and candidates read from one scenario."""

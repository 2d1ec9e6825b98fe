"""Files and options of a search: axes, goals, and many candidates read from one scenario."""

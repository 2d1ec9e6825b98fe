"""Files that describe a service: its engine, its load, and the figures fitted to engines."""

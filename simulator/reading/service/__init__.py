"""Files that describe a service: its engine, its load, and the fitted figures of engines."""

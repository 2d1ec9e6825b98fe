"""Reports of a sweep: as text, as JSON and as files."""

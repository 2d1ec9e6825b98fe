"""Reports of a validation: errors, coverage and unseen series as text, tables, JSON and HTML."""

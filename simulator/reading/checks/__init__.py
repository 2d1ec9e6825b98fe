"""What must agree between the keys and sections of a scenario."""

"""Recommendation of machines: a search over hardware and settings, ranked by the user's goal."""

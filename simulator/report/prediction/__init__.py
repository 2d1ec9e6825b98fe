"""Reports of one prediction: the short answer, the full one, JSON, timeline and explanation."""

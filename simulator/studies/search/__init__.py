"""Searches over many candidates: which are predicted, by whom, what is kept and which are best."""

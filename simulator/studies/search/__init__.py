"""Searches over many candidates: selection, workers, the store of outcomes, and ranking."""

"""Hugging Face ``config.json``: the shape of a model with its defaults, and what it counts."""

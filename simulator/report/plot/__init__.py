"""Figures, drawn by matplotlib without a screen; nothing outside this package knows it."""

"""Measurement sets: reading of their declaration and rows, and writing."""

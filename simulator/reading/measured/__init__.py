"""Measurement sets on disk: their declaration, their rows, and how they are written."""

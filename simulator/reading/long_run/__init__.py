"""Sections on a long run and its bill: interruptions, spot, ownership, power, campaigns."""

"""Faces of a prediction: terminal text, JSON, timeline, explanation.

A report renders what `results` holds and `metrics` names. It decides on words and layout, never
on a figure.
"""

"""Levers: what can be changed about a job or service, its values, and what a change costs."""

"""Chakra execution traces: their binary and text forms, their nodes, and the step in them."""

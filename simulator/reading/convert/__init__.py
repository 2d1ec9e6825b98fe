"""Sections of a scenario turned into the domain types that the model computes with."""

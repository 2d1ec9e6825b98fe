"""Logs of how busy devices and hosts were, from several monitoring tools."""

"""Fitted figures on disk: kernels, deviations, calibrations, and which hold for a scenario."""

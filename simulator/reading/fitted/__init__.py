"""Fitted figures: kernels, deviations, calibrations, and the selection for a scenario."""

"""Calibration: fit parameters to measured rows, and estimate how well the rows determine them."""

"""Validation: predict measured rows, score the errors and compare them with naive predictors."""

"""How wrong predictions are: measured rows predicted, scored and compared with naive predictors."""

"""Rows of the table of language-model runs: machines, software, recipes and regimes."""

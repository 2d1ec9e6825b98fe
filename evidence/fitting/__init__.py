"""Programs that fit the figures in ``simulator/data`` to measured rows; ``fit.py`` runs them."""

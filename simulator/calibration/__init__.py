"""Which values of parameters explain measured rows, and how well rows determine them."""

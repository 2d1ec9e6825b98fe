"""Published catalogues of cloud prices, with what is known to be wrong in them."""

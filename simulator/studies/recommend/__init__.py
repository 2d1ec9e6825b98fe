"""Which machines to take: a search over hardware and settings, ranked by the user's own goal."""

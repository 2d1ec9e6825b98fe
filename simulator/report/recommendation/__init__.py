"""Reports of a recommendation: the best choice, the front, and how to launch it."""

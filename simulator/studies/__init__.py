"""Questions that take many predictions: how wrong they are, and which figures fit measurements."""

"""Reports of what each resource is worth, and of swapped accelerators."""

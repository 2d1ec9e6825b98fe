"""Reports of hardware profiles and of the age of their prices."""

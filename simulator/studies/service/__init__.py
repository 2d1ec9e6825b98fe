"""Studies of services: sizing, changes that help, and what they cost."""

"""Evidence that a user already has: files of other tools become profiles and measurement sets."""

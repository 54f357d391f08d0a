"""The init phase."""

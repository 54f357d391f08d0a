"""Finds, reads and shows the journals of a run."""

"""Checks of a job: what is wrong with it, and what will surprise its author."""

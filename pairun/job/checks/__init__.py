"""Checks of a job: errors, and what may surprise its author."""

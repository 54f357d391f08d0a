"""Runs a plan: attempts, retries, deadlines, exit handlers, journal."""

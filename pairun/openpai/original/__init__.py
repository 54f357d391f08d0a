"""Predicts what OpenPAI's own runtime does with a job, as far as the job file shows it."""

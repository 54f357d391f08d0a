"""What starts a job's instances."""

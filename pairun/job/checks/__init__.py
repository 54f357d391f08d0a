"""What is wrong with a job, or will surprise its author."""

"""What OpenPAI's own runtime does with a job, as far as it can be told from the job file."""

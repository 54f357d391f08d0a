"""The view of a job while it runs: what each instance does, what it prints, how it ended."""

"""Shows a running job: what each instance does, its output, how it ended."""

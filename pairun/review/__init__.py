"""What a job would do: its plans, a verdict for every task, and who set each value."""

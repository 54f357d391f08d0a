"""A plan becomes events and an outcome: attempts, retry, deadline, exit handlers, journal."""

"""PID 1 of the user's container: the supervisor."""

"""The process that runs a runtime plan's tasks, or its exit handlers, for PID 1."""

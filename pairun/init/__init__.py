"""The init phase: reads a Pod's inputs, plans both phases, runs the init tasks, hands over."""

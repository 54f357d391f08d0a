"""The init phase: read a Pod's inputs, plan both phases, run the init tasks, hand over."""

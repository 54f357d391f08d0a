"""The volume between the two phases: what init writes and the runtime phase reads."""

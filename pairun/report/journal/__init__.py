"""The journals of a run: found, read, and shown."""

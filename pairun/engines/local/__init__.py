"""The engine that runs a whole job on this machine."""

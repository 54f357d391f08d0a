"""YAML and JSON texts as trees in which every value has its place."""

"""YAML and JSON texts as trees in which every value knows its place."""

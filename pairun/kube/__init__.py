"""Reads the objects of a cluster."""

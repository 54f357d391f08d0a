"""Engines: what starts the instances of a job, on this machine or in a cluster."""

"""Sends requests to servers: downloads, checks, the cluster's API server."""

"""Learns rules from a cluster's logs: groups endings that no rule explains, and drafts rules."""

"""Learning rules from a cluster's own logs: endings that no rule explains, grouped, and drafts of rules."""

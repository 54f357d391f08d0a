"""Whether a cluster is ready for jobs: what is missing, and what to do about it. Nothing is changed."""

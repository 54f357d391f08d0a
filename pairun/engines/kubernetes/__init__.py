"""Jobs in a Kubernetes cluster: what is written for it, and what is asked of it."""

"""Jobs in a Kubernetes cluster: create, follow, print their logs, delete."""

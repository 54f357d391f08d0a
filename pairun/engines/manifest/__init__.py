"""Makes the objects that a job needs in a Kubernetes cluster."""

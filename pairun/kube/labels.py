"""What Kubernetes takes as the value of a label."""

LABEL_VALUE = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
"""An expression for a value that is not empty (Kubernetes, "Labels and Selectors")."""

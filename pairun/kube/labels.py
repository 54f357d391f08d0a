"""What Kubernetes takes as the key and as the value of a label."""

LABEL_VALUE = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
"""An expression for a value that is not empty (Kubernetes, "Labels and Selectors")."""

LABEL_KEY = r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
"""The key of a label, with its prefix; as `LABEL_VALUE`, without the bounds of its length."""

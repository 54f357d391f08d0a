"""The syntax of a label's key and value in Kubernetes."""

LABEL_VALUE = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
"""An expression for a non-empty value (Kubernetes, "Labels and Selectors")."""

LABEL_KEY = r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
"""An expression for a key with its prefix; unlike `LABEL_VALUE`, without limits of length."""

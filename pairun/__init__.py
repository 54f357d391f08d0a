"""pairun: playbooks for the two phases in which a deep-learning job starts."""

__version__ = "0.3.0"

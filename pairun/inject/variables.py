"""The variables of the init container by which an injection tells it what is in the manifest."""

COMMAND = "PAIRUN_COMMAND"
"""The user's command, as a JSON list, for plans and reviews."""
RESTARTS = "PAIRUN_GANG_RESTARTS"
"""Set where a failed container restarts in its Pod: the barrier holds again in the runtime phase."""
RECORD = "PAIRUN_INJECTED"
"""What a removal must know."""
STYLES = "PAIRUN_GANG_ENVIRONMENT"
"""The styles of the gang's variables, with commas."""


def is_injected(data: bytes) -> bool:
    """Whether a text may be a manifest with pairun in it."""
    return RECORD.encode() in data

"""The init container's variables, by which an injection passes data from the manifest."""

COMMAND = "PAIRUN_COMMAND"
"""The user's command, as a JSON list, for plans and reviews."""
RESTARTS = "PAIRUN_GANG_RESTARTS"
"""Set if a failed container restarts in its Pod: the barrier runs again in the runtime phase."""
RECORD = "PAIRUN_INJECTED"
"""The data that a removal needs."""
STYLES = "PAIRUN_GANG_ENVIRONMENT"
"""The styles of the gang's variables, separated by commas."""


def is_injected(data: bytes) -> bool:
    """Whether a text may be a manifest that contains pairun."""
    return RECORD.encode() in data

"""The runtime plan as typed data: what `pairun.handover.reader` read, decoded by `pairun.plan`."""

from __future__ import annotations

from pairun.base.paths import runtime_file
from pairun.handover.door import Door
from pairun.handover.reader import PLAN_FILE, read_document, read_secrets
from pairun.plan import Plan, load_plan
from pairun.secrets.vault import Vault


def read_plan(root: str) -> tuple[Plan, Vault]:
    """The runtime plan that init left, and what no sink may show of it.

    Args:
        root: the shared volume.

    Raises:
        PairunError: there is none, or it cannot be used.
    """
    door = Door(root)
    secrets, document = read_secrets(door), read_document(door)
    plan = load_plan(document, secrets, runtime_file(root, PLAN_FILE))
    # The values are whole texts that hold secrets; what must not show is the secrets in them.
    return plan, Vault(secrets.get("redact", ()))

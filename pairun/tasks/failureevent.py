"""The Event about a failed command, sent after the exit summary is made."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pairun.base.paths import journal_file
from pairun.diagnose.brief import CONSEQUENCES
from pairun.diagnose.classes import UNKNOWN
from pairun.handover.door import Door
from pairun.handover.journal import Journal
from pairun.kube.events import Note
from pairun.kube.tokenvolume import CREDENTIALS
from pairun.secrets.vault import Vault

SEND_S = 1.0
"""The maximum delay of the container's end by all requests together, in seconds."""


def report_failure(
    diagnosis: Mapping[str, Any], code: int, pai_dir: str, env: Mapping[str, str], vault: Vault
) -> None:
    """Send the diagnosis as an Event of the Pod and its workload, if the API server is reachable.

    Skips a failure that another instance caused: that instance reports its own. Only the journal
    records whether the Event was sent.

    Args:
        diagnosis: why the command died, masked.
        code: the command's exit code.
        pai_dir: path of the shared volume.
        env: the container's environment.
        vault: masks the message.
    """
    if diagnosis["class"] in CONSEQUENCES - {UNKNOWN} or not _may_ask(env):
        return
    # Imported here, with the HTTP client: most containers have no token.
    from pairun.net.podevents import send_event

    advice = f"; {diagnosis['advice']}" if diagnosis.get("advice") else ""
    about = f"the command exited with {code}: {diagnosis['headline']} ({diagnosis['class']})"
    note = Note("CommandFailed", vault.text(f"{about}{advice}"), True)
    sent = send_event(note, env, SEND_S)
    path = journal_file(pai_dir, env)
    journal = Journal(Door(pai_dir), path, vault.record, lambda _: None)
    failed = {} if sent.why_not is None else {"because": sent.why_not}
    journal({"type": "event", "reason": note.reason, "message": note.message, **failed})
    journal.close()


def _may_ask(env: Mapping[str, str]) -> bool:
    folder = env.get("PAIRUN_API_CREDENTIALS") or CREDENTIALS
    return bool(env.get("KUBE_APISERVER_ADDRESS")) or os.path.exists(os.path.join(folder, "token"))

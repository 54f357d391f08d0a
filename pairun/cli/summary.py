"""``pairun summary``: make the exit summary in a process that PID 1 can stop."""

from __future__ import annotations

import argparse
import json
import os
import signal
from collections.abc import Mapping
from typing import Any

from pairun.base.paths import journal_file, pai_dir
from pairun.diagnose.classes import CONSEQUENCES, UNKNOWN
from pairun.diagnose.diagnosis import Diagnosis
from pairun.diagnose.podjournal import with_pod_history
from pairun.kube.events import Note
from pairun.runtime.exitsummary import SummaryInput, answer_to
from pairun.secrets.vault import Vault
from pairun.volume.door import Door
from pairun.volume.journal import Journal

SEND_S = 1.0
"""The maximum delay of the container's end by all requests of the Event together, in seconds."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--state-in", type=int, metavar="FD", required=True)
    parser.add_argument("--state-out", type=int, metavar="FD", required=True)


def run(args: argparse.Namespace) -> int:
    """Make the summary, and write it to ``--state-out``."""
    # SIGALRM limits the time of each expression; PID 1 has blocked it.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    with open(args.state_in, encoding="utf-8") as f:
        question = SummaryInput(**json.load(f))
    answer = answer_to(question, os.environ, args.vault, _first_failure, with_pod_history)
    with open(args.state_out, "w", encoding="utf-8", closefd=False) as f:
        json.dump(answer._asdict(), f)
    if answer.diagnosis is not None and not question.facts.get("stopped"):
        # PID 1 already has its answer, and limits the time of this process.
        diagnosis = {**answer.diagnosis, "exit_code": question.failed_code}
        send_failure(diagnosis, question.volume, os.environ, args.vault)
    return 0


def send_failure(
    diagnosis: Mapping[str, Any], volume: str, env: Mapping[str, str], vault: Vault
) -> None:
    """Send a diagnosis as an Event of the Pod and its workload, if the API server is reachable.

    Skips a failure that another instance caused: that instance reports its own.

    Args:
        diagnosis: why the command died, with its exit code.
        volume: path of the shared volume.
        vault: masks the message.
    """
    # Imported here: PID 1 waits for the summary, and not for this.
    from pairun.net.podevents import can_send, send_event

    if diagnosis["class"] in CONSEQUENCES - {UNKNOWN} or not can_send(env):
        return
    journal = Journal(Door(volume), journal_file(volume, env), vault.record, lambda _: None)
    send_event(failure_note(vault.record(diagnosis)), env, SEND_S, journal)
    journal.close()


def failure_note(diagnosis: Mapping[str, Any]) -> Note:
    """The text of the Event about a command that failed."""
    advice = f"; {diagnosis['advice']}" if diagnosis.get("advice") else ""
    about = f"the command exited with {diagnosis['exit_code']}: {diagnosis['headline']}"
    return Note("CommandFailed", f"{about} ({diagnosis['class']}){advice}", True)


def _first_failure(why: Diagnosis) -> str | None:
    # imported here, because only a failed command needs it
    from pairun.rendezvous.firstfailure import OwnFailure, first_failure

    own = OwnFailure(why.klass, why.headline, why.is_consequence)
    return first_failure(own, pai_dir())

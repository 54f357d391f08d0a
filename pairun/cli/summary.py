"""``pairun summary``: make the exit summary in a process that PID 1 can stop."""

from __future__ import annotations

import argparse
import json
import os
import signal

from pairun.base.paths import pai_dir
from pairun.diagnose.brief import is_consequence
from pairun.diagnose.diagnosis import Diagnosis
from pairun.incident.podhistory import with_pod_history
from pairun.runtime.exitsummary import Question, answer_to
from pairun.tasks.failureevent import report_failure


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--state-in", type=int, metavar="FD", required=True)
    parser.add_argument("--state-out", type=int, metavar="FD", required=True)


def run(args: argparse.Namespace) -> int:
    """Make the summary, and write it to ``--state-out``."""
    # SIGALRM limits the time of each expression; PID 1 has blocked it.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    with open(args.state_in, encoding="utf-8") as f:
        question = Question(**json.load(f))
    answer = answer_to(question, os.environ, args.vault, _first_failure, with_pod_history)
    with open(args.state_out, "w", encoding="utf-8", closefd=False) as f:
        json.dump(answer._asdict(), f)
    if answer.diagnosis is not None and not question.facts.get("stopped"):
        # PID 1 already has its answer, and limits the time of this process.
        report_failure(
            answer.diagnosis, question.user_code, question.volume, os.environ, args.vault
        )
    return 0


def _first_failure(why: Diagnosis) -> str | None:
    # imported here, because only a failed command needs it
    from pairun.rendezvous.firstfailure import OwnFailure, first_failure

    own = OwnFailure(why.klass, why.headline, is_consequence(why))
    return first_failure(own, pai_dir())

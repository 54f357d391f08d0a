"""``pairun summary``: the exit summary, in a process of its own that PID 1 starts and may stop."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pairun.base.paths import pai_dir
from pairun.diagnose.brief import is_consequence
from pairun.diagnose.weighing import Diagnosis
from pairun.runtime.exitsummary import Question, work_out

if TYPE_CHECKING:
    from pairun.rendezvous.facts import Facts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--state-in", type=int, metavar="FD", required=True)
    parser.add_argument("--state-out", type=int, metavar="FD", required=True)


def run(args: argparse.Namespace) -> int:
    """Work the summary out; what became of it is written to ``--state-out``."""
    # The limit of an expression is a signal to ourselves.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    with open(args.state_in, encoding="utf-8") as f:
        question = Question(**json.load(f))
    answer = work_out(question, os.environ, lambda why: first_failure(why, pai_dir()))
    with open(args.state_out, "w", encoding="utf-8", closefd=False) as f:
        json.dump(answer._asdict(), f)
    return 0


SAME_FAILURE_S = 3600.0
"""Failures so far apart have nothing to do with each other; a collective waits half an hour at most."""

PEERS_S = 0.7
"""How long the other instances are asked, all in all; it is part of the summary's time."""


def first_failure(why: Diagnosis, volume: str) -> str | None:
    """Tell the other instances why this one failed; who of them failed first.

    A cause outranks what follows from it, so each kind has a first one of its own.

    Args:
        why: why this instance failed.
        volume: the shared volume.

    Returns:
        None where nobody knows, and where this one was the first.
    """
    from pairun.errors import PairunError
    from pairun.rendezvous.peers import peers_of

    peers = peers_of(volume, "runtime")
    if peers is None:
        return None
    now = time.time()
    said = {"by": peers.name, "class": why.klass, "headline": why.headline, "at": now}
    with contextlib.suppress(PairunError):
        if not is_consequence(why):
            return _told(_first("first cause", said, peers.facts), peers.name, now)
        followed = _first("first consequence", said, peers.facts)
        with contextlib.suppress(PairunError):
            cause = peers.facts.get("first cause", PEERS_S / 2)
            if (words := _told(cause, peers.name, now)) is not None:
                return words
        if _class(followed) == why.klass == "terminated_sigterm":
            return None  # all are stopped, and nobody failed
        return _told(followed, peers.name, now)
    return None


def _class(first: object) -> object:
    return first.get("class") if isinstance(first, dict) else None


def _first(name: str, said: Mapping[str, Any], facts: Facts) -> object:
    """The first failure of a kind; one of long ago, of an instance that runs again, is replaced."""
    found = facts.put(name, said, PEERS_S / 2)
    if _is_news(found, said["at"]):
        return found
    return facts.put(name, said, PEERS_S / 2, replace=True)


def _is_news(first: object, now: float) -> bool:
    at = first.get("at") if isinstance(first, dict) else None
    return isinstance(at, int | float) and now - at < SAME_FAILURE_S


def _told(first: object, own: str, now: float) -> str | None:
    if not isinstance(first, dict) or first.get("by") == own or not _is_news(first, now):
        return None
    words = (str(first.get(name))[:200] for name in ("by", "headline", "class"))
    return "{} failed first: {} ({})".format(*words)

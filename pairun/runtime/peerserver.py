"""The job's first instance goes on serving the others, in a process beside the user's command."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping

from pairun.base.forwarding import CATCHABLE
from pairun.base.paths import KEY_FILE, PLACE_FILE
from pairun.runtime.own import own_command

_MAX_BYTES = 1024 * 1024


def serve_peers(pai_dir: str, env: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Start the server where this instance leads its job; it ends when everything else does.

    Without the job's key nobody would be believed, and nothing is started.

    Args:
        pai_dir: the shared volume.
        env: of the process.
        say: takes one line for people.
    """
    if not _leads(pai_dir) or not os.path.isfile(os.path.join(pai_dir, KEY_FILE)):
        return
    argv = own_command("rendezvous", pai_dir)
    try:
        os.posix_spawn(argv[0], argv, env, setsid=True, setsigmask=(), setsigdef=CATCHABLE)
    except OSError as e:
        say(f"the other instances of the job are not served: {e.strerror}")


def _leads(pai_dir: str) -> bool:
    try:
        with open(os.path.join(pai_dir, PLACE_FILE), "rb") as f:
            return bool(json.loads(f.read(_MAX_BYTES))["rank"] == 0)
    except (OSError, ValueError, KeyError, TypeError):
        return False

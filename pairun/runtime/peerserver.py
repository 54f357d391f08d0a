"""The job's first instance goes on serving the others, in a process beside the user's command."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping

from pairun.base.forwarding import CATCHABLE
from pairun.base.paths import KEY_FILE, PLACE_FILE
from pairun.handover.door import Door
from pairun.runtime.own import own_command

_MAX_BYTES = 1024 * 1024


def serve_peers(door: Door, env: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Start the server where this instance leads its job; it ends when everything else does.

    Without the job's key nobody would be believed, and nothing is started.

    Args:
        door: to the shared volume.
        env: of the process.
        say: takes one line for people.
    """
    if not _leads(door) or not door.is_file(os.path.join(door.root, KEY_FILE)):
        return
    argv = own_command("rendezvous", door.root)
    try:
        os.posix_spawn(argv[0], argv, env, setsid=True, setsigmask=(), setsigdef=CATCHABLE)
    except OSError as e:
        say(f"the other instances of the job are not served: {e.strerror}")


def _leads(door: Door) -> bool:
    try:
        note = door.read(os.path.join(door.root, PLACE_FILE), _MAX_BYTES)
        return bool(json.loads(note)["rank"] == 0)
    except (OSError, ValueError, KeyError, TypeError):
        return False

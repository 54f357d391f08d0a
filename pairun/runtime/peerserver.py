"""The rendezvous server of the job's first instance: a process parallel to the user's command."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from pairun.base.foreignjson import parse_record
from pairun.base.forwarding import CATCHABLE
from pairun.base.paths import KEY_FILE, PLACE_FILE
from pairun.handover.door import Door
from pairun.runtime.children import own_command

_MAX_BYTES = 1024 * 1024


def serve_peers(door: Door, env: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Start the server if this instance leads its job and has the job's key.

    The server ends with the container.

    Args:
        door: to the shared volume.
        env: the server's environment.
        say: takes one line for people.
    """
    if not _leads(door) or not door.is_file(os.path.join(door.root, KEY_FILE)):
        return
    argv = own_command("rendezvous", door.root)
    try:
        os.posix_spawn(argv[0], argv, env, setsid=True, setsigmask=(), setsigdef=CATCHABLE)
    except OSError as e:
        say(f"the server for the job's other instances could not be started: {e.strerror}")


def _leads(door: Door) -> bool:
    try:
        place = parse_record(door.read(os.path.join(door.root, PLACE_FILE), _MAX_BYTES))
    except OSError:
        return False
    return place is not None and place.get("rank") == 0

"""The file on the volume that tells the user's container where the rendezvous is."""

from __future__ import annotations

import json
import os
from typing import NamedTuple

from pairun.base.foreignjson import parse_json
from pairun.base.paths import PLACE_FILE
from pairun.rendezvous.roster import Address, Gang, JobKey, checked_address
from pairun.rendezvous.wire import BadPeer
from pairun.volume.door import Door

_MAX_BYTES = 1024 * 1024


class Place(NamedTuple):
    """A member's place in its job.

    Attributes:
        leader: the leader's address.
        job: the attempt.
        rank: this member's number among all.
        gang: the roles and their counts.
        leader_ended: whether the leader had ended when this instance's init phase asked.
    """

    leader: Address
    job: JobKey
    rank: int
    gang: Gang
    leader_ended: bool = False


def write_place(pai_dir: str, place: Place) -> None:
    """Write the file; it contains no secret.

    Raises:
        OSError: it cannot be written.
    """
    data = {
        "schema": 1,
        "leader": list(place.leader),
        "job": list(place.job),
        "rank": place.rank,
        "roles": [list(role) for role in place.gang.roles],
        "leader_ended": place.leader_ended,
    }
    Door(pai_dir).write(os.path.join(pai_dir, PLACE_FILE), json.dumps(data).encode())


def read_place(pai_dir: str) -> Place | None:
    """Read the file; None if it is missing or invalid."""
    try:
        data = parse_json(Door(pai_dir).read(os.path.join(pai_dir, PLACE_FILE), _MAX_BYTES))
        leader = checked_address(data["leader"])
        uid, attempt = data["job"]
        roles = tuple((str(name), int(count)) for name, count in data["roles"])
        job, rank = JobKey(str(uid), int(attempt)), int(data["rank"])
        # 0.1 does not write it.
        has_ended = data.get("leader_ended") is True
        place = Place(leader, job, rank, Gang(roles), has_ended)  # type: ignore[arg-type]
    except (OSError, ValueError, KeyError, TypeError, BadPeer):
        return None
    return place if leader and data["schema"] == 1 else None

"""The note on the volume that tells the user's container where the rendezvous is."""

from __future__ import annotations

import json
import os
from typing import NamedTuple

from pairun.rendezvous.roster import Address, Gang, JobKey, checked_address
from pairun.rendezvous.wire import BadPeer

NAME = "rendezvous.json"
_MAX_BYTES = 1024 * 1024


class Place(NamedTuple):
    """Where a job's members meet.

    Attributes:
        leader: address of the leader.
        job: the attempt.
        rank: this member's number among all.
        gang: the roles and their counts.
    """

    leader: Address
    job: JobKey
    rank: int
    gang: Gang


def write_place(pai_dir: str, place: Place) -> None:
    """Write the note; it holds nothing that is secret.

    Raises:
        OSError: it cannot be written.
    """
    data = {
        "schema": 1,
        "leader": list(place.leader),
        "job": list(place.job),
        "rank": place.rank,
        "roles": [list(role) for role in place.gang.roles],
    }
    path = os.path.join(pai_dir, NAME)
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        json.dump(data, file)
    os.replace(f"{path}.new", path)


def read_place(pai_dir: str) -> Place | None:
    """Read the note; None where there is none that can be used."""
    try:
        with open(os.path.join(pai_dir, NAME), "rb") as file:
            data = json.loads(file.read(_MAX_BYTES))
        leader = checked_address(data["leader"])
        uid, attempt = data["job"]
        roles = tuple((str(name), int(count)) for name, count in data["roles"])
        place = Place(leader, JobKey(str(uid), int(attempt)), int(data["rank"]), Gang(roles))  # type: ignore[arg-type]
    except (OSError, ValueError, KeyError, TypeError, RecursionError, BadPeer):
        return None
    return place if leader and data["schema"] == 1 else None

"""Earlier programs in later layouts, recorded after the diagnosis was changed for the fifth set."""

from __future__ import annotations

from tests.incidents.cases.fourth_set import _fleet
from tests.incidents.incident import Incident, Label

_LATE = ["nccl_timeout", "peer_lost", "unknown"]


INCIDENTS: dict[str, Incident] = {
    "late-start-stamped": Incident(
        Label("rank 2 of 3 reads an index and does not join; the others wait for 20 s",
              "rendezvous_timeout", "retry", 2, ["hang", *_LATE]),
        _fleet("2:late-start", 3, WAIT_S="20"),
        form="stamped",
        limit_s=40,
    ),
}  # fmt: skip

"""Further layouts, recorded after the diagnosis was changed for the fourth set."""

from __future__ import annotations

from tests.incidents.cases.fourth_set import _USER, _agents, _fleet
from tests.incidents.incident import Incident, Label, alone

_LATE = ["nccl_timeout", "peer_lost", "unknown"]


INCIDENTS: dict[str, Incident] = {
    "journal-json-key": Incident(
        Label("rank 1 of 3 raises KeyError; journalctl -o json of all hosts", *_USER, 1),
        _fleet("1:key@9", 3, "hpc-{}", ON_ERROR="logged", LOGS="loguru"),
        form="journal-json",
    ),
    "tagged-swallowed": Incident(
        Label("rank 1 of 4 logs KeyError in one line and ends with 0; Fluentd's output", *_USER, 1,
              ["peer_lost", "unknown"]),
        _fleet("1:key@9", 4, "w-{}", LOGS="absl", ON_ERROR="swallowed"),
        form="tagged",
    ),
    "tailed-segfault": Incident(
        Label("rank 0 of 3 crashes with SIGSEGV under faulthandler; aws logs tail", "segfault",
              "retry", 0, ["native_abort"]),
        _fleet("0:segv@9", 3, "fleet-{}"),
        form="tailed",
    ),
    "crew-code": Incident(
        Label("worker 2 of 3 exits with 9 after an error; the launcher says so", "child_failed",
              "retry", 2, ["user_code_error", "unknown", "peer_lost", "hang"]),
        alone("python crew.py code 2"),
        limit_s=40,
    ),
    "agents-exit-stern": Incident(
        Label("rank 2 of 4 raises ValueError; the agents' own logs only", *_USER, 2,
              ["child_failed", "input_data_error"]),
        _agents("--redirects 3 --log-dir logs", "2:value"),
        form="stern",
        limit_s=120,
    ),
}  # fmt: skip

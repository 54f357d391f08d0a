"""Layouts of process managers, exports and CI, recorded after what the sixth set showed."""

from __future__ import annotations

from tests.incidents import collecting
from tests.incidents.cases.fourth_set import _USER, _fleet, _warehouse
from tests.incidents.incident import Incident, Label

_LATE = ["nccl_timeout", "peer_lost", "unknown"]
_LOST = ["unknown", "host_oom"]


INCIDENTS: dict[str, Incident] = {
    "parallel-killed": Incident(
        Label("rank 2 of 4 is killed; GNU parallel's tags", "peer_lost", "retry", 2, _LOST),
        _fleet("2:kill@9", 4, LOGS="clock"),
        form="parallel",
    ),
    "csv-segfault": Incident(
        Label("rank 0 of 3 crashes with SIGSEGV under faulthandler; an export as CSV", "segfault",
              "retry", 0, ["native_abort"]),
        _fleet("0:segv@9", 3, "run-7-{}"),
        form="csv",
        collect=collecting.renamed({"export.csv": "export.txt"}),
    ),
    "logfmt-value": Incident(
        Label("rank 2 of 3 raises ValueError; lines in logfmt", *_USER, 2, ["input_data_error"]),
        _fleet("2:value@9", 3, "fleet-{}", LOGS="absl", ON_ERROR="logged"),
        form="logfmt",
    ),
    "ci-asleep": Incident(
        Label("rank 1 of 3 waits in its own code; the others time out after 15 s; a CI server's log",
              "hang", "retry", 1, _LATE),
        _fleet("1:asleep@9", 3, "worker-{}", WAIT_S="15"),
        form="ci",
        limit_s=30,
    ),
    "pm2-zero": Incident(
        Label("rank 2 of 3 raises ZeroDivisionError; PM2's output", *_USER, 2),
        _fleet("2:zero@9", 3, LOGS="bare", ON_ERROR="logged"),
        form="pm2",
    ),
    "folded-attribute": Incident(
        Label("rank 0 of 3 raises AttributeError; dshbak's blocks", *_USER, 0),
        _fleet("0:attribute@9", 3, ON_ERROR="logged"),
        collect=collecting.in_turn(
            collecting.renamed({f"worker-{r}.log": f"gpu-{r}" for r in range(3)}),
            collecting.under_headers("all.txt", "----------------\n{}\n----------------\n"),
        ),
    ),
    "warehouse-honcho": Incident(
        Label("worker 2 of 4 is killed; the server meets EOF; honcho's output", "peer_lost", "retry",
              2, _LOST),
        _warehouse("2:kill@12", 4),
        form="honcho",
    ),
}  # fmt: skip

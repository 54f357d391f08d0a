"""Which files are logs of a job, and whose."""

from __future__ import annotations

import os
from pathlib import Path

from pairun.diagnose.gathering import answer
from pairun.diagnose.logfiles import files_in
from pairun.diagnose.table import Table
from tests.diagnose.jobs import KEY_ERROR, incident_of, write

UID = "9fc6006e-e91b-4464-8e68-a352d3c3015f"
LOST = "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.3]:41\n"


def within(folder: Path) -> list[str]:
    """The files that are read of a folder."""
    return [file.within for file in files_in([str(folder)]) if not file.skipped]


def test_of_a_run_only_the_output_is_read(tmp_path: Path, table: Table) -> None:
    """Plans, secrets, journals and what PID 1 says are no logs; an instance has its folder's name."""
    files: dict[str, str | bytes] = {".pairun-run": "", "gang/framework.json": KEY_ERROR}
    for n in range(2):
        volume = f"worker-{n}/pai"
        files |= {
            f"worker-{n}/output.log": KEY_ERROR,
            f"{volume}/.pairun": "",
            f"{volume}/runtime.d/secrets.json": KEY_ERROR,
            f"{volume}/logs/{UID}/journal.jsonl": "{}\n",
            f"{volume}/logs/{UID}/runtime.log": KEY_ERROR,
            f"{volume}/logs/{UID}/user-all/current": KEY_ERROR if n else LOST,
        }
    assert within(write(tmp_path, files)) == [
        f"worker-{n}/pai/logs/{UID}/user-all/current" for n in range(2)
    ]
    incident = incident_of(tmp_path, table)
    assert incident.first is not None
    assert incident.first.label == "worker-1"


def test_where_no_command_began_the_logs_of_the_phases_are_read(tmp_path: Path) -> None:
    """A Pod whose init failed has no output."""
    files = {"uid/journal.jsonl": "{}\n", "uid/init.log": "x", "uid/metrics.txt": "y"}
    assert within(write(tmp_path, files)) == ["uid/init.log"]


def test_links_models_and_hidden_files_are_left_out(tmp_path: Path) -> None:
    """Only regular files that may be logs are read."""
    write(tmp_path, {"rank0.log": "x", "model.safetensors": "y", ".hidden": "z"})
    os.symlink("/etc/passwd", tmp_path / "rank1.log")
    assert within(tmp_path) == ["rank0.log"]


def test_named_files_are_told_apart_by_their_folders(tmp_path: Path, table: Table) -> None:
    """Equal names in folders of instances are two members."""
    write(tmp_path, {"job/worker-0/output.log": LOST, "job/worker-1/output.log": KEY_ERROR})
    paths = [str(tmp_path / f"job/worker-{n}/output.log") for n in range(2)]
    incident = answer(files_in(paths), table, 60).incident
    assert incident is not None
    assert [m.label for m in incident.members] == ["worker-0", "worker-1"]
    assert incident.first is not None
    assert incident.first.label == "worker-1"

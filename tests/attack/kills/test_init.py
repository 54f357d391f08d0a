"""Init is killed at any moment, and runs again: the volume is as if nothing had happened."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from pairun.volume.journal import read_journal
from tests.attack.kills.killing import Tree, moments
from tests.cli.test_init import JOB, ROOT, SENTINEL, UID, Init, init
from tests.effort import cases

__all__ = ["init"]

KILLS = cases(20)
LOGS = {"init.log", "journal.jsonl"}
MODULE = '''
from pairun.module import CheckModule, Context, Result, define


@define
class Quick(CheckModule):
    """Nothing."""

    phases = ("runtime",)
    example = "quick: {}"

    def check(self, ctx: Context) -> Result:
        """Nothing."""
        return Result(message="done")
'''


def fresh(init: Init) -> None:
    """The volume as a new Pod has it."""
    shutil.rmtree(init.volume)
    (init.volume / "secrets").mkdir(parents=True)
    (init.volume / "secrets/secrets.yaml").write_text(json.dumps(JOB["secrets"]))
    # Of a mount point nothing is asked; this folder is none.
    (init.volume / ".pairun").touch()


def start(init: Init) -> Tree:
    """Start init, with all that it starts in a namespace of its own."""
    argv = [sys.executable, "-m", "pairun", "init", "--root", str(init.folder / "root")]
    return Tree(argv, ROOT, init.env)


def journal(init: Init) -> list[dict[str, Any]]:
    """The journal's records."""
    return list(read_journal(str(init.volume / "logs" / UID / "journal.jsonl")))


@pytest.fixture
def cluster(init: Init) -> Init:
    """A cluster with a module of its own, a large program for the volume, and tasks that write."""
    root = init.folder / "root"
    for folder in ("modules", "playbooks"):
        (root / folder).mkdir(parents=True)
    (root / "modules/quick.py").write_text(MODULE)
    program = init.folder / "program"
    program.write_bytes(b"#!/bin/sh\n" + os.urandom(8 * 1024 * 1024))
    program.chmod(0o755)
    init.env["PAIRUN_BUNDLE"] = str(program)
    init.placed(
        "  - append:\n"
        "    id: writes\n"
        "    name: Hands over variables and a file\n"
        f"    cmd: {{script: 'cd {init.volume}/runtime.d; echo A=b > env; echo C=$(seq -s, 2000) >> env'}}\n"
        "  - append:\n"
        "    id: keeps\n"
        "    name: A file\n"
        f"    file: {{path: {init.volume}/kept/conf, content: x, mode: '0640'}}\n"
        "runtime:\n"
        "  - before: user_command\n"
        "    id: quick\n"
        "    name: The cluster's own module\n"
        "    quick: {}\n"
    )
    return init


@pytest.mark.slow
def test_init_killed_at_any_moment(cluster: Init) -> None:
    """The second run ends well, and leaves what an uninterrupted one leaves, modes included."""
    fresh(cluster)
    code, printed, seconds = start(cluster).end()
    assert code == 0, printed
    expected = cluster.files()
    assert "runtime.d/modules/quick.py" in expected
    fresh(cluster)
    *_, seconds = start(cluster).end()
    for number, moment in enumerate(moments(KILLS, seconds, seed=16)):
        if number % 3 != 2:  # else on the volume that the last round has left
            fresh(cluster)
        start(cluster).kill_after(moment)
        code, printed, _ = start(cluster).end()
        assert code == 0, (moment, printed)
        assert "Traceback" not in printed
        assert SENTINEL not in printed
        left = cluster.files()
        assert left.keys() == expected.keys(), moment
        assert [n for n in left if left[n] != expected[n]] == [], moment
        last = journal(cluster)[-1]
        assert (last["type"], last["outcome"]) == ("phase_end", "success"), moment
        logs = {p.name for p in (cluster.volume / "logs" / UID).iterdir()}
        assert logs >= LOGS
        assert all(name.startswith("prelog_") for name in logs - LOGS), logs


@pytest.mark.slow
def test_init_killed_again_and_again(cluster: Init) -> None:
    """However many runs were killed before, the one that ends leaves the same."""
    fresh(cluster)
    code, printed, seconds = start(cluster).end()
    assert code == 0, printed
    expected = cluster.files()
    fresh(cluster)
    for moment in moments(max(3, KILLS // 4), seconds, seed=17):
        start(cluster).kill_after(moment)
    code, printed, _ = start(cluster).end()
    assert code == 0, printed
    assert cluster.files() == expected


def test_the_volume_holds_no_plan_before_it_is_complete(cluster: Init, tmp_path: Path) -> None:
    """What PID 1 needs is there as a whole or not at all: the plan is written last, in one step."""
    fresh(cluster)
    seen = cluster.folder / "seen"
    cluster.placed(
        "  - append:\n"
        "    id: looks\n"
        "    name: What is there\n"
        f"    cmd: {{script: 'ls -R {cluster.volume} > {seen}'}}\n"
    )
    code, printed, _ = start(cluster).end()
    assert code == 0, printed
    assert "plan.json" not in seen.read_text()

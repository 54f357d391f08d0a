"""The shared volume as init writes it: modes, owners, and errors in words."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

from pairun.base.forwarding import Forwarding, SignalStep
from pairun.contract.loading import ModuleFile
from pairun.contract.sources import built_in_modules
from pairun.errors import PairunError
from pairun.module import Secret
from pairun.plan import Late, Plan, Task
from pairun.secrets.vault import Vault
from pairun.volume.door import Door
from pairun.volume.planfile import read_plan
from pairun.volume.reader import Command, read_command, read_environment
from pairun.volume.writer import Volume

UID = "12345"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A new volume, as kubelet makes an emptyDir."""
    folder = tmp_path / "pai"
    folder.mkdir()
    folder.chmod(0o777)
    return folder


def plan() -> Plan:
    """A plan of nothing but the user's command, which has a secret."""
    args = {"argv": ["train", "--fast"]}
    environment = {"TOKEN": Secret("s3cret-token"), "SHOWN": "yes"}
    command = Task(
        id="user_command", name="The command", module="user_command", args=args,
        environment=environment,
    )  # fmt: skip
    module = ModuleFile(path=built_in_modules()["user_command"], sha256="", built_in=True)
    return Plan(phase="runtime", steps=(command,), modules={"user_command": module})


def mode(path: Path) -> int:
    """The permissions of a path."""
    return stat.S_IMODE(path.lstat().st_mode)


def volume(root: Path, **env: str) -> Volume:
    """The volume, prepared."""
    made = Volume(str(root), {"PAIRUN_BUNDLE": "", "FC_POD_UID": "pod", **env})
    made.prepare()
    return made


def test_modes(root: Path) -> None:
    """Only ``run`` and the Pod's log directory are for others to write."""
    volume(root)
    modes = {str(p.relative_to(root)): mode(p) for p in sorted(root.rglob("*"))}
    assert mode(root) == 0o755
    assert modes == {
        ".pairun": 0o644, "logs": 0o755, "logs/pod": 0o777, "logs/pod/journal.jsonl": 0o666,
        "run": 0o1777, "runtime.d": 0o755,
    }  # fmt: skip


def test_a_volume_of_somebody_else_keeps_its_mode(root: Path) -> None:
    """Where the Pod may not run as root, the volume is not init's to protect."""
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    os.chown(root, 65534, -1)
    volume(root)
    assert mode(root) == 0o777


def test_the_handover_is_read_back(root: Path) -> None:
    """PID 1 reads the command raw, the executor the same plan decoded; the secret stands apart."""
    volume(root).hand_over(plan(), ["s3cret-token"], {"A": "it's", "B": Secret("s3cret-token 2")})
    text = (root / "runtime.d/plan.json").read_text()
    assert "s3cret-token" not in text
    door = Door(str(root))
    assert read_command(door, Vault()) == Command(
        grace_s=30.0, argv=("train", "--fast"),
        environment={"TOKEN": Secret("s3cret-token"), "SHOWN": "yes", "B": Secret("s3cret-token 2")},
    )  # fmt: skip
    assert read_environment(door) == {"A": "it's"}
    vault = Vault()
    decoded = read_plan(str(root), vault)
    assert decoded.steps[-1].environment["TOKEN"] == Secret("s3cret-token")  # type: ignore[union-attr]
    assert vault.text("a s3cret-token b") == "a ****** b"


def test_what_pid_1_runs_is_ready_to_use(root: Path) -> None:
    """Signals, shells and variables are as PID 1 needs them; what surrounds the command is known."""
    args = {
        "script": "train", "shell": "sh", "on_stop": "interrupted", "signals_to": "process",
        "signals": {"SIGTERM": ["SIGUSR1", "2s", "SIGTERM"], "SIGHUP": []},
    }  # fmt: skip
    handler = Task(id="undo", name="Undo", module="user_command", args={}, events=("success",))
    (command,) = plan().steps
    assert isinstance(command, Task)
    environment = {"N": 3, "B": True, "NONE": None}
    command = attrs.evolve(command, args=args, environment=environment, on_exit=(handler,))
    volume(root).hand_over(attrs.evolve(plan(), steps=(handler, command), grace_s=7.0), [])
    assert read_command(Door(str(root)), Vault()) == Command(
        grace_s=7.0, has_tasks=True, handlers=("undo",), environment={"N": "3", "B": "true"},
        shells=("sh",), on_stop="interrupted",
        forwarding=Forwarding(
            to_group=False, rewrite={15: (SignalStep(0.0, 10), SignalStep(2.0, 15)), 1: ()}
        ),
    )  # fmt: skip


@pytest.mark.parametrize("part", ["args", "environment"])
def test_a_command_that_depends_on_a_result(root: Path, part: str) -> None:
    """PID 1 resolves nothing, so init refuses the command and names what it depends on."""
    late = Late(template="{{ results.a }}", because="the results of tasks before it", where="p:3")
    (command,) = plan().steps
    assert isinstance(command, Task)
    changes: dict[str, Any] = {part: {"argv": ["a", {"b": late}]}}
    command = attrs.evolve(command, **changes)
    with pytest.raises(PairunError, match="depends on the results of tasks before it: p:3") as e:
        volume(root).hand_over(attrs.evolve(plan(), steps=(command,)), [])
    assert [p.id for p in e.value.problems] == ["PR305"]


def test_a_program_that_the_platform_mounts_is_not_copied(root: Path, tmp_path: Path) -> None:
    """The names that jobs know lead to it, and an earlier copy is gone."""
    program = tmp_path / "mounted"
    program.write_text("#!/bin/sh\necho it ran\n")
    program.chmod(0o755)
    volume(root)
    (root / "runtime").write_bytes(b"of an earlier attempt")
    volume(root, PAIRUN_PROGRAM=str(program), PAIRUN_BUNDLE=sys.executable).add_program()
    assert (root / "runtime").readlink() == program
    for name in ("runtime", "bin/pairun"):
        assert subprocess.check_output([root / name], text=True) == "it ran\n"


def test_a_program_without_an_absolute_path_is_refused(root: Path) -> None:
    """A link to it would lead somewhere else on the volume."""
    with pytest.raises(PairunError, match="absolute"):
        volume(root, PAIRUN_PROGRAM="opt/runtime").add_program()


@pytest.mark.parametrize(("uid", "expected"), [(UID, 0o600), ("", 0o644), ("root", 0o644)])
def test_who_may_read_secrets(root: Path, uid: str, expected: int) -> None:
    """The app's user alone where it is known, else whoever reaches the volume; the plan is for all."""
    old = os.umask(0o077)
    try:
        volume(root, PAIRUN_APP_UID=uid).hand_over(plan(), [])
    finally:
        os.umask(old)
    secrets = root / "runtime.d/secrets.json"
    assert mode(secrets) == expected
    assert mode(root / "runtime.d/plan.json") == 0o644
    if os.geteuid() == 0:
        assert secrets.stat().st_uid == (int(UID) if uid == UID else 0)


def test_variables_are_added_once_more(root: Path) -> None:
    """Of a name that is there already the last line counts, and a later run writes the same."""
    made = volume(root)
    made.add("runtime_env.sh", b"export A='1'\nexport B='2'\n")
    made._add_variables({"A": "o'clock"})
    assert read_environment(Door(str(root))) == {"A": "o'clock", "B": "2"}


@pytest.mark.parametrize("name", ["plan.json", "secrets.json"])
def test_what_stands_in_the_way(root: Path, name: str) -> None:
    """A directory in the place of a file is an error that names it."""
    made = volume(root)
    (root / "runtime.d" / name).mkdir()
    with pytest.raises(PairunError) as e:
        made.hand_over(plan(), [])
    (problem,) = e.value.problems
    assert problem.id == "PR701"
    assert f"runtime.d/{name}: Is a directory" in problem.message


def test_a_second_attempt_starts_clean(root: Path, tmp_path: Path) -> None:
    """Whatever stands on the volume is removed without being followed; what is kept stays."""
    volume(root)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("precious")
    os.mkfifo(root / "fifo")
    (root / "link").symlink_to(outside)
    (root / "deep/er").mkdir(parents=True)
    (root / "secrets").mkdir()
    (root / "runtime.d/plan.json").write_text(json.dumps({}))
    volume(root)
    names = sorted(p.name for p in root.iterdir())
    assert names == [".pairun", "logs", "run", "runtime.d", "secrets"]
    assert list((root / "runtime.d").iterdir()) == []
    assert (outside / "file").read_text() == "precious"

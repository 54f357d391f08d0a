"""The one reader of what init left: raw texts, bounded, and every trouble in words."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairun.errors import PairunError
from pairun.handover import reader
from pairun.handover.door import Door
from pairun.handover.planreading import read_plan
from pairun.handover.reader import read_environment, read_file, read_inputs, read_secrets
from pairun.secrets.vault import Vault

PLAN = {
    "schema": 1, "pairun": "0", "phase": "runtime", "grace_s": 10.0, "modules": {},
    "context": {}, "steps": [{"id": "c", "name": "C", "module": "user_command",
                              "args": {"argv": ["train"]}}],
}  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A volume with a plan."""
    folder = tmp_path / "pai"
    (folder / "runtime.d").mkdir(parents=True)
    (folder / "runtime.d/plan.json").write_text(json.dumps(PLAN))
    return folder


def test_pid_1_needs_no_secrets_file(root: Path) -> None:
    """The executor does: what a plan refers to must be there."""
    assert read_inputs(str(root), Vault()).argv == ("train",)
    assert read_secrets(Door(str(root)), Vault(), optional=True) == {}
    with pytest.raises(PairunError, match=r"secrets\.json is missing"):
        read_plan(str(root), Vault())


@pytest.mark.parametrize("name", ["plan.json", "secrets.json", "runtime_env.sh"])
def test_a_file_that_is_too_large(root: Path, name: str) -> None:
    """Nobody reads a file without end, be it a sparse one."""
    path = root / "runtime.d" / name
    with open(path, "wb") as file:
        os.truncate(file.fileno(), 1 << 40)
    with pytest.raises(PairunError) as e:
        read_inputs(str(root), Vault())
    assert [p.id for p in e.value.problems] == ["PR702"]
    assert "larger than" in e.value.problems[0].message


@pytest.mark.parametrize(
    "text", ["", "[1]", "{", '{"schema": 2}', "\0", "[" * 100_000, '{"schema": 1, "steps": []}']
)
def test_a_plan_that_is_none(root: Path, text: str) -> None:
    """Torn, foreign and endlessly nested texts are PR702."""
    (root / "runtime.d/plan.json").write_text(text)
    with pytest.raises(PairunError) as e:
        read_inputs(str(root), Vault())
    assert [p.id for p in e.value.problems] == ["PR702"]


def test_a_missing_file(root: Path) -> None:
    """What init did not leave is None, and a missing plan says that init has not run."""
    assert read_file(Door(str(root)), "exit-spec.json") is None
    (root / "runtime.d/plan.json").unlink()
    with pytest.raises(PairunError, match="the init phase did not run"):
        read_inputs(str(root), Vault())


@given(
    values=st.dictionaries(st.from_regex(r"\A[A-Z_]{1,9}\Z"), st.text("ab'\" \\$\n=", max_size=20))
)
def test_variables(tmp_path_factory: pytest.TempPathFactory, values: dict[str, str]) -> None:
    """Every value that a shell would read is read so, quotes and line ends included."""
    root = tmp_path_factory.mktemp("pai")
    (root / "runtime.d").mkdir()
    lines = [f"export {n}='{v.replace(chr(39), chr(39) + chr(92) + chr(39) * 2)}'\n"
             for n, v in values.items()]  # fmt: skip
    (root / "runtime.d" / reader.ENVIRONMENT_FILE).write_text("".join(lines))
    assert read_environment(Door(str(root))) == values


# --- plans with wrong values ---------------------------------------------------------------------

COMMAND_PLAN: dict[str, Any] = {
    "schema": 1,
    "pairun": "1",
    "phase": "runtime",
    "grace_s": 30.0,
    "modules": {},
    "steps": [
        {
            "id": "user_command",
            "name": "The command",
            "module": "user_command",
            "args": {"argv": ["train"], "signals": {"SIGTERM": ["SIGINT", "1s", "SIGTERM"]}},
            "environment": {"A": "x", "N": 3, "B": {"$secret": "s1"}},
            "on_exit": [{"id": "undo", "name": "Undo", "module": "cmd", "args": {}}],
        }
    ],
}
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 10**400, float("inf"), float("nan"), "", "x", "x\0y", [], {}, [[1]],
    [None], ["x\0y"], {"x": 1}, {"x\0": "y"}, {"x=": "y"}, {"": "y"}, {"$secret": "s9"}, {"$secret": []}, {"$late": 1},
)  # fmt: skip


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    """A volume with a user's command and a secret."""
    (tmp_path / "runtime.d").mkdir()
    (tmp_path / "runtime.d/user.sh").write_text("true")
    secrets = {"schema": 1, "values": {"s1": "s3cr3t"}, "redact": []}
    (tmp_path / "runtime.d/secrets.json").write_text(json.dumps(secrets))
    return tmp_path


def spots(document: Any) -> list[tuple[Any, Any]]:
    """Every place in a document: what holds it, and its key or index."""
    items = list(document.items() if isinstance(document, dict) else enumerate(document))
    inner = [s for _, v in items if isinstance(v, dict | list) for s in spots(v)]
    return [(document, key) for key, _ in items] + inner


@pytest.mark.slow
def test_every_value_replaced_by_every_other(volume: Path) -> None:
    """With any one value replaced, PID 1 has inputs that it can use, or refuses the plan."""
    read = 0
    for spot in range(len(spots(COMMAND_PLAN))):
        for value in VALUES:
            document = copy.deepcopy(COMMAND_PLAN)
            holder, key = spots(document)[spot]
            holder[key] = value
            (volume / "runtime.d/plan.json").write_text(json.dumps(document))
            try:
                inputs = read_inputs(str(volume), Vault())
            except PairunError as e:
                assert {p.id for p in e.problems} <= {"PR702", "PR704"}
                continue
            read += 1
            variables = inputs.command_environment
            texts = (*inputs.argv, *inputs.handlers, *variables, *variables.values())
            assert all(type(t) is str and "\0" not in t for t in texts)
            assert all(name and "=" not in name for name in variables)
            assert 0 <= inputs.grace_s < float("inf")
    assert read > 100

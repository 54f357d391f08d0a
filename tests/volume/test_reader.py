"""The one reader of what init left: raw texts, bounded, and every trouble in words."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairun.errors import PairunError
from pairun.secrets.vault import Vault
from pairun.volume import reader
from pairun.volume.door import Door
from pairun.volume.planfile import read_plan
from pairun.volume.reader import Secrets, read_command, read_environment, read_file, read_secrets

PLAN = {
    "schema": 2, "phase": "runtime", "modules": {},
    "steps": [{"id": "c", "name": "C", "module": "user_command", "args": {"argv": ["train"]}}],
    "command": {"grace_s": 10.0, "argv": ["train"]},
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
    assert read_command(Door(str(root)), Vault()).argv == ("train",)
    assert read_secrets(Door(str(root)), Vault(), optional=True) == Secrets()
    with pytest.raises(PairunError, match=r"secrets\.json is missing"):
        read_plan(str(root), Vault())


@pytest.mark.parametrize("name", ["plan.json", "secrets.json"])
def test_a_file_that_is_too_large(root: Path, name: str) -> None:
    """Nobody reads a file without end, be it a sparse one."""
    path = root / "runtime.d" / name
    with open(path, "wb") as file:
        os.truncate(file.fileno(), 1 << 40)
    with pytest.raises(PairunError) as e:
        read_command(Door(str(root)), Vault())
    assert [p.id for p in e.value.problems] == ["PR702"]
    assert "larger than" in e.value.problems[0].message


@pytest.mark.parametrize(
    "text", ["", "[1]", "{", '{"schema": 1}', "\0", "[" * 100_000, '{"schema": 2, "steps": []}']
)
def test_a_plan_that_is_none(root: Path, text: str) -> None:
    """Torn, foreign and endlessly nested texts are PR702."""
    (root / "runtime.d/plan.json").write_text(text)
    with pytest.raises(PairunError) as e:
        read_command(Door(str(root)), Vault())
    assert [p.id for p in e.value.problems] == ["PR702"]


def test_a_missing_file(root: Path) -> None:
    """What init did not leave is None, and a missing plan says that init has not run."""
    assert read_file(Door(str(root)), "exit-spec.json") is None
    (root / "runtime.d/plan.json").unlink()
    with pytest.raises(PairunError, match="the init phase did not run"):
        read_command(Door(str(root)), Vault())


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


@pytest.mark.parametrize(
    "secrets", [[], {"values": []}, {"values": {"s1": 3}}, {"redact": [3]}, {"redact": "x"}]
)
def test_secrets_that_are_none(root: Path, secrets: Any) -> None:
    content = {"schema": 2, **secrets} if isinstance(secrets, dict) else secrets
    (root / "runtime.d/secrets.json").write_text(json.dumps(content))
    for read in (
        lambda: read_command(Door(str(root)), Vault()),
        lambda: read_plan(str(root), Vault()),
    ):
        with pytest.raises(PairunError, match=r"secrets\.json cannot be used") as e:
            read()
        assert [p.id for p in e.value.problems] == ["PR702"]

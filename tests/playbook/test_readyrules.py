"""The rules that an image has ready: used where they are the same, and never else."""

from __future__ import annotations

import json
import pathlib
import zlib

import pytest

from pairun.diagnose.table import Table
from pairun.errors import Problems
from pairun.playbook import readyrules
from pairun.playbook.content import open_content
from pairun.playbook.readyrules import made_rules, packed, ready_rules


@pytest.fixture
def ready(tmp_path: pathlib.Path) -> pathlib.Path:
    """The built-in rules, compressed as in an image."""
    path = tmp_path / "rules.json.z"
    path.write_bytes(packed(made_rules(open_content([], {}), Problems())))
    return path


def _rules(
    path: pathlib.Path, roots: list[str], monkeypatch: pytest.MonkeyPatch
) -> tuple[bytes, bool]:
    """The rules, and whether they had to be made."""
    made = []

    def make(*args: object) -> bytes:
        made.append(args)
        return made_rules(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(readyrules, "made_rules", make)
    content = open_content(roots, {})
    return ready_rules(content, {"PAIRUN_RULES": str(path)}, Problems()), bool(made)


def test_the_same_rules_are_not_made_again(
    ready: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What PID 1 gets is what the image has, and can be used."""
    found, made = _rules(ready, [], monkeypatch)
    assert (found, made) == (ready.read_bytes(), False)
    assert Table(json.loads(zlib.decompress(found))).rules


def test_a_clusters_own_rules_are_made(
    ready: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A root that says anything of the diagnosis makes them others."""
    (tmp_path / "root" / "diagnosis").mkdir(parents=True)
    (tmp_path / "root" / "diagnosis" / "codes.yaml").write_text("exit_codes: {gpu_oom: 221}\n")
    found, made = _rules(ready, [str(tmp_path / "root")], monkeypatch)
    assert made
    assert Table(json.loads(zlib.decompress(found))).exit_codes == {"gpu_oom": 221}


@pytest.mark.parametrize(
    "spoiled", [b"", packed(b"{}"), packed(b'{"made_of":"' + b"0" * 64 + b'",')]
)
def test_others_are_not_used(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, spoiled: bytes
) -> None:
    """A file of another version, or of none, counts for nothing; nor does one that is missing."""
    (tmp_path / "rules.json.z").write_bytes(spoiled)
    for path in (tmp_path / "rules.json.z", tmp_path / "nothing"):
        found, made = _rules(path, [], monkeypatch)
        assert made
        assert Table(json.loads(zlib.decompress(found))).rules

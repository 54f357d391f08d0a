"""The table of rules that the command line keeps between calls."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pairun.cli.rulestable import rules_table
from pairun.secrets.vault import Vault


def rules_of(folder: Path, *roots: str) -> set[str]:
    """The names of the rules, with a cache in a folder."""
    return set(rules_table(roots, {"XDG_CACHE_HOME": str(folder)}, Vault()).rules)


def test_the_second_call_reads_what_the_first_one_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rules are the same, and no YAML is read for them."""
    first = rules_of(tmp_path)
    kept = tmp_path / "pairun" / "rules.json"
    assert kept.stat().st_mode & 0o077 == kept.stat().st_mode & 0o044

    def refuse(*_: object) -> None:
        raise AssertionError("the rules are read again")

    monkeypatch.setattr("pairun.playbook.rules.read_rules", refuse)
    assert rules_of(tmp_path) == first


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"made_of":"x","table":{}}'])
def test_what_is_of_other_rules_or_damaged_is_replaced(tmp_path: Path, text: str) -> None:
    """A file that does not fit is written anew."""
    kept = tmp_path / "pairun" / "rules.json"
    kept.parent.mkdir()
    kept.write_text(text)
    assert "uncaught-exception" not in rules_of(tmp_path)
    assert json.loads(kept.read_text())["table"]["rules"]


def test_a_link_in_the_cache_is_not_followed(tmp_path: Path) -> None:
    """The table comes from the rules then."""
    kept = tmp_path / "pairun" / "rules.json"
    rules_of(tmp_path)
    other = tmp_path / "other.json"
    kept.rename(other)
    data = json.loads(other.read_text())
    data["table"]["rules"] = []
    other.write_text(json.dumps(data))
    os.symlink(other, kept)
    assert rules_of(tmp_path)


def test_other_roots_are_always_read(tmp_path: Path) -> None:
    """A cluster's own rules count although a table is kept."""
    rules_of(tmp_path)
    root = tmp_path / "root" / "diagnosis"
    root.mkdir(parents=True)
    (root / "ours.yaml").write_text(
        "family: ours\nrules:\n  - id: reactor-off\n    class: storage_io_error\n"
        "    patterns: ['reactor scrammed']\n    positive: [reactor scrammed, a reactor scrammed]\n"
        "    negative: [reactor on, no reactor]\n"
    )
    assert "reactor-off" in rules_of(tmp_path, str(root.parent))
    assert "reactor-off" not in rules_of(tmp_path)

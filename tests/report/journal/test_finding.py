"""Journals are found and read below a folder that a person names, and through no link in it."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from pairun.report.journal.finding import read_all, read_instance
from pairun.volume.journal import read_journal

RECORD = {"schema": 1, "type": "phase_begin", "phase": "init", "pairun": "0", "tasks": 0, "time": 1}


def journal(folder: Path) -> Path:
    """A journal in a Pod's log directory."""
    folder.mkdir(parents=True)
    path = folder / "journal.jsonl"
    path.write_text(json.dumps(RECORD) + "\n")
    return path


@pytest.mark.parametrize("named", ["", "logs", "logs/uid", "logs/uid/journal.jsonl"])
def test_a_journal_of_a_volume(tmp_path: Path, named: str) -> None:
    """The volume, its logs, a Pod's log directory and the file itself lead to it."""
    journal(tmp_path / "logs/uid")
    instances, problems = read_all(str(tmp_path / named), read_instance)
    assert not problems
    assert [i.label for i in instances] == ["uid"]


@pytest.mark.parametrize("name", ["config", "secrets"])
def test_a_run_whose_name_is_special_on_a_volume(tmp_path: Path, name: str) -> None:
    """A job may be called as what the platform mounts."""
    journal(tmp_path / name / "pai/logs/uid")
    instances, problems = read_all(str(tmp_path), read_instance)
    assert not problems
    assert [i.label for i in instances] == ["uid"]


@pytest.mark.parametrize("link", ["logs", "logs/uid", "logs/uid/journal.jsonl"])
def test_a_link_below_the_volume_is_not_followed(tmp_path: Path, link: str) -> None:
    """What the user's command puts there in place of a folder or a file leads nowhere."""
    journal(tmp_path / "outside/logs/uid")
    place = tmp_path / "volume" / link
    place.parent.mkdir(parents=True)
    place.symlink_to(tmp_path / "outside" / link)
    instances, problems = read_all(str(tmp_path / "volume"), read_instance)
    assert not instances
    assert [p.id for p in problems] == ["PR810"]


@pytest.mark.parametrize("named", ["logs/uid/journal.jsonl", "logs/uid", "logs"])
def test_a_link_on_the_volume_of_this_pod(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    """In a Pod no link counts even where a person names a path behind it."""
    volume = tmp_path / "volume"
    volume.mkdir()
    (volume / "logs").symlink_to(journal(tmp_path / "outside/uid").parents[1])
    monkeypatch.setenv("PAIRUN_PAI_DIR", str(volume))
    instances, problems = read_all(str(volume / named), read_instance)
    assert not instances
    assert [p.id for p in problems] == ["PR810"]


def test_a_folder_that_a_person_names_may_be_a_link(tmp_path: Path) -> None:
    """The way to it is the person's own."""
    journal(tmp_path / "volume/logs/uid")
    (tmp_path / "link").symlink_to("volume")
    assert len(read_all(str(tmp_path / "link"), read_instance)[0]) == 1


def finishes(path: Path) -> bool:
    """Whether a journal is read without waiting for anybody."""
    thread = threading.Thread(target=read_journal, args=(str(path),), daemon=True)
    thread.start()
    thread.join(20)
    return not thread.is_alive()


@pytest.mark.parametrize("kind", ["fifo", "link to a fifo"])
def test_a_fifo_in_place_of_a_journal(tmp_path: Path, kind: str) -> None:
    """The summary of a run does not wait for a writer that never comes."""
    path = tmp_path / "logs/uid/journal.jsonl"
    path.parent.mkdir(parents=True)
    os.mkfifo(path if kind == "fifo" else path.parent / "fifo")
    if kind != "fifo":
        path.symlink_to("fifo")
    assert finishes(path)
    assert read_journal(str(path)) == []

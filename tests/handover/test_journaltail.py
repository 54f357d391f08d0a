"""A journal that is still being written."""

from __future__ import annotations

import os
import pathlib

from pairun.handover.journaltail import MAX_RECORD, JournalTail


def test_records_come_once_and_whole(tmp_path: pathlib.Path) -> None:
    """A torn line waits for its rest; what is no record is left out."""
    path = tmp_path / "logs" / "uid" / "journal.jsonl"
    path.parent.mkdir(parents=True)
    tail = JournalTail(str(path))
    assert tail.read() == []
    with path.open("w") as f:
        f.write('{"schema": 1, "type": "a"}\n[]\nnonsense\n{"schema": 9}\n{"schema": 1, "ty')
        f.flush()
        assert [r["type"] for r in tail.read()] == ["a"]
        assert tail.read() == []
        f.write('pe": "b"}\n')
        f.flush()
        assert [r["type"] for r in tail.read()] == ["b"]
        f.write("x" * 2 * MAX_RECORD)
        f.flush()
        for _ in range(9):
            assert tail.read() == []
        assert len(tail._rest) <= MAX_RECORD
    tail.close()


def test_a_link_and_a_pipe_are_not_read(tmp_path: pathlib.Path) -> None:
    """An instance owns its volume: what it puts in the journal's place is refused."""
    folder = tmp_path / "logs" / "uid"
    folder.mkdir(parents=True)
    (tmp_path / "private").write_text('{"schema": 1, "type": "a"}\n')
    (folder / "journal.jsonl").symlink_to(tmp_path / "private")
    os.mkfifo(folder / "pipe")
    for name in ("journal.jsonl", "pipe"):
        assert JournalTail(str(folder / name)).read() == []

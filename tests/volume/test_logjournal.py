"""The journal on a container's log, and what a reader makes of a log."""

from __future__ import annotations

import json
import pathlib
import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pairun.secrets.vault import Vault
from pairun.volume.door import Door
from pairun.volume.journal import Journal
from pairun.volume.logjournal import (
    LINE_CHARS,
    LOG_JOURNAL_VARIABLE,
    PREFIX,
    LogJournal,
    is_journal_line,
    read_log,
)

ON = {LOG_JOURNAL_VARIABLE: "true"}


class Shown:
    """A journal and the log that shows it."""

    def __init__(self, folder: pathlib.Path, env: dict[str, str], vault: Vault) -> None:
        self.path = folder / "logs" / "uid" / "journal.jsonl"
        self.path.parent.mkdir(parents=True)
        self.lines: list[str] = []
        door = Door(str(folder))
        # The file is written without masks, as a command may write it.
        self.record = Journal(door, str(self.path), Vault().record, print)
        self.on_log = LogJournal(env, door, str(self.path), vault.record, self.lines.append)

    def read(self) -> list[dict[str, Any]]:
        """The records that a reader of the log has."""
        return [json.loads(line) for line in (read_log(self.lines) or b"").splitlines()]


def test_a_log_shows_what_the_file_holds(tmp_path: pathlib.Path) -> None:
    """Each time only what is new is shown; a reader has every record once, between other lines."""
    shown = Shown(tmp_path, ON, Vault())
    shown.record({"type": "phase_begin", "phase": "init"})
    shown.record({"type": "progress", "task": "a", "attempt": 1, "bytes": 5})
    shown.on_log.show()
    shown.lines.append("ok  a: what a task printed")
    shown.record({"type": "phase_end", "phase": "init", "outcome": "success"})
    shown.on_log.show()
    shown.on_log.show()
    assert [r["type"] for r in shown.read()] == ["phase_begin", "phase_end"]
    assert sum(map(is_journal_line, shown.lines)) == 2


def test_the_whole_journal_is_shown_again(tmp_path: pathlib.Path) -> None:
    """Who reads the end of a log alone has everything; who reads all of it has nothing twice."""
    shown = Shown(tmp_path, ON, Vault())
    for number in range(3):
        shown.record({"type": "wait", "task": "a", "seconds": number})
        shown.on_log.show(whole=True)
    assert [r["seconds"] for r in shown.read()] == [0, 1, 2]
    del shown.lines[:-1]
    assert [r["seconds"] for r in shown.read()] == [0, 1, 2]


def test_without_the_variable_the_log_is_as_ever(tmp_path: pathlib.Path) -> None:
    """The journal is shown only if the variable is true."""
    shown = Shown(tmp_path, {}, Vault())
    shown.record({"type": "phase_end"})
    shown.on_log.show(whole=True)
    assert shown.lines == []
    assert read_log(shown.lines) is None


def test_secrets_are_masked(tmp_path: pathlib.Path) -> None:
    """Also secrets that the command wrote into the file."""
    shown = Shown(tmp_path, ON, Vault(["very-secret-word"]))
    shown.record({"type": "task_end", "message": "it is very-secret-word"})
    shown.on_log.show()
    assert shown.read()[0]["message"] == "it is ******"


def test_a_long_journal_has_several_lines(tmp_path: pathlib.Path) -> None:
    """No line is so long that a container's runtime would cut it; one that is missing costs all."""
    shown = Shown(tmp_path, ON, Vault())
    noise = random.Random(1).randbytes(20_000).hex()
    shown.record({"type": "task_end", "message": noise})
    shown.on_log.show()
    assert len(shown.lines) > 1
    assert max(map(len, shown.lines)) < LINE_CHARS + 100
    assert shown.read()[0]["message"] == noise
    del shown.lines[0]
    assert read_log(shown.lines) is None


def test_a_hostile_file_costs_the_lines_alone(tmp_path: pathlib.Path) -> None:
    """What nests too deep or is too large is not shown, and nothing is raised."""
    shown = Shown(tmp_path, ON, Vault())
    shown.path.write_text('{"type": ' + "[" * 100_000)
    shown.on_log.show()
    shown.path.write_bytes(b'{"type": "x"}\n' * 200_000)
    shown.on_log.show()
    assert shown.lines == []


@given(
    st.lists(
        st.text(st.characters(codec="utf-8")) | st.text("0123456789/ ").map(f"{PREFIX}0 ".__add__)
    )
)
def test_any_log_can_be_read(lines: list[str]) -> None:
    """Whatever a command prints, a reader has records or none."""
    assert read_log(lines) in (None, b"")


def test_what_unpacks_to_too_much_is_left_out() -> None:
    """A line of a few bytes does not fill the reader's memory."""
    import base64
    import zlib

    bomb = base64.b64encode(zlib.compress(b"a" * (40 << 20), 9)).decode()
    parts = [bomb[n : n + LINE_CHARS] for n in range(0, len(bomb), LINE_CHARS)]
    lines = [f"{PREFIX}0 {n}/{len(parts)} {p}" for n, p in enumerate(parts, 1)]
    assert read_log(lines) is None

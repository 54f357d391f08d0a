"""What attempts print, as lines: split, decoded, redacted, bounded; and what people see."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairun.executor.output import MAX_OUTPUT_LINE_BYTES, TAIL_LINES, OutputLines
from pairun.report.console import Console
from pairun.secrets.vault import Vault


class Pipe:
    """A pipe whose read end makes lines."""

    def __init__(self, *secrets: str) -> None:
        fd, self.end = os.pipe()
        os.set_blocking(fd, False)
        self.events: list[dict[str, Any]] = []
        self.lines = OutputLines(fd, "a", Vault(secrets), self.events.append, lambda: None)

    def write(self, data: bytes) -> None:
        """Print something, and read it."""
        os.write(self.end, data)
        self.lines.read()

    def close(self) -> list[str]:
        """End the output; returns all lines."""
        os.close(self.end)
        self.lines.read()
        assert not self.lines.open
        return self.texts

    @property
    def texts(self) -> list[str]:
        """The lines so far."""
        return [e["line"] for e in self.events]


@given(st.lists(st.binary(max_size=40), max_size=12))
def test_lines_do_not_depend_on_the_pieces(pieces: list[bytes]) -> None:
    """However an output is cut into writes, its lines are the same."""
    pipe = Pipe()
    for piece in pieces:
        pipe.write(piece)
    *lines, rest = b"".join(pieces).split(b"\n")
    expected = [*lines, rest] if rest else lines
    assert pipe.close() == [x.decode("utf-8", "replace").rstrip("\r") for x in expected]


def test_a_secret_that_is_sent_before_the_output_that_holds_it_is_masked() -> None:
    """Both may wait when the executor reads: the secrets come first."""
    pipe, end = os.pipe()
    os.set_blocking(pipe, False)
    vault, events = Vault(), list[dict[str, Any]]()
    lines = OutputLines(pipe, "a", vault, events.append, lambda: vault.add(["late-secret"]))
    os.write(end, b"it is late-secret\n")
    os.close(end)
    lines.read()
    lines.read()
    assert [e["line"] for e in events] == ["it is ******"]


@given(st.integers(0, 60), st.booleans())
def test_a_secret_is_masked_across_writes(cut: int, encoded: bool) -> None:
    """A secret that is split over two writes is masked, in any of its forms."""
    text = b"before Z2VoZWltLWdlaGVpbQ== after" if encoded else b"before geheim-geheim after"
    pipe = Pipe("geheim-geheim")
    pipe.write(text[:cut])
    pipe.write(text[cut:])
    (line,) = pipe.close()
    assert "******" in line
    assert "geheim" not in line
    assert "Z2VoZWlt" not in line


def test_a_line_without_end_is_cut() -> None:
    """What never ends a line is shown in pieces, and held in memory no longer."""
    pipe = Pipe()
    for _ in range(3):
        pipe.write(b"x" * (MAX_OUTPUT_LINE_BYTES + 1))
    assert len(pipe.texts) == 3
    assert "".join(pipe.close()) == "x" * 3 * (MAX_OUTPUT_LINE_BYTES + 1)


def test_the_tail() -> None:
    """The last lines are kept, with the one that is not complete."""
    pipe = Pipe()
    pipe.write(b"".join(b"%d\n" % n for n in range(50)) + b"rest")
    assert pipe.lines.tail() == [*map(str, range(50 - TAIL_LINES + 1, 50)), "rest"]
    pipe.close()


def test_one_read_is_bounded() -> None:
    """One look takes at most what a pipe holds, however fast the other side writes."""
    pipe = Pipe()
    writer = subprocess.Popen(["yes"], stdout=pipe.end)
    try:
        for _ in range(3):
            pipe.lines.read()
        assert sum(len(t) + 1 for t in pipe.texts) <= 3 * 65536
    finally:
        writer.kill()
        writer.wait()
        os.close(pipe.end)
        os.close(pipe.lines.fd)


# --- the console ----------------------------------------------------------------------------------


def end(**more: Any) -> dict[str, Any]:
    """The end of a task."""
    return {
        "type": "task_end", "task": "a", "name": "A task", "outcome": "ok", "attempts": 1, "of": 1,
        "seconds": 0.5, "message": "", "handler": False, **more,
    }  # fmt: skip


def test_what_people_see() -> None:
    """One line per task; a failure says its kind, its fault and what to do."""
    stream = io.StringIO()
    console = Console(stream, Vault(["geheim"]))
    console(end())
    console(end(outcome="failed", attempts=2, of=6, message="no geheim", kind="permanent",
                fault="user", hint="log in"))  # fmt: skip
    console({"type": "attempt_begin", "task": "a"})
    assert stream.getvalue().splitlines() == [
        "ok       a: A task (500 ms)",
        "failed   a: A task (500 ms, attempt 2 of 6)",
        "         no ****** [permanent after 2 attempts; fault: user]",
        "         help: log in",
    ]


def test_texts_that_cannot_be_shown() -> None:
    """No text and no stream is so odd that telling it ends the phase."""
    raw = io.BytesIO()
    for encoding in ("ascii", "utf-8"):
        stream = io.TextIOWrapper(raw, encoding)
        Console(stream, Vault(["geheim"])).say("ä \udcff \ud800 geheim")
        stream.detach()
    assert raw.getvalue().decode() == "\\xe4 \\udcff \\ud800 ******\nä \\udcff \\ud800 ******\n"


@pytest.mark.parametrize("target", ["pipe", "/dev/full"])
def test_nobody_listens(target: str) -> None:
    """When the reader went away or the disk is full, the phase goes on, and its code is its own."""
    code = (
        "import sys; from pairun.report.console import Console; from pairun.secrets.vault import Vault\n"
        "c = Console(sys.stdout, Vault())\n"
        "for _ in range(9): c.say('x' * 9000)\n"
        "sys.exit(3)"
    )
    if target == "pipe":
        reader, out = os.pipe()
        os.close(reader)
    else:
        out = os.open(target, os.O_WRONLY)
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, stdout=out, stderr=subprocess.PIPE
    )
    os.close(out)
    assert (done.returncode, done.stderr) == (3, b"")

"""Colours, where the stream takes them."""

from __future__ import annotations

import io

import pytest

from pairun.report.tint import Tint, takes_color


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "color", "env", "takes"),
    [
        (Terminal(), "auto", {"TERM": "xterm"}, True),
        (Terminal(), "auto", {"TERM": "dumb"}, False),
        (Terminal(), "auto", {"TERM": "xterm", "NO_COLOR": ""}, False),
        (Terminal(), "never", {"TERM": "xterm"}, False),
        (io.StringIO(), "auto", {"TERM": "xterm"}, False),
        (io.StringIO(), "always", {"NO_COLOR": "1"}, True),
    ],
)
def test_who_takes_colours(
    monkeypatch: pytest.MonkeyPatch,
    stream: io.StringIO,
    color: str,
    env: dict[str, str],
    takes: bool,
) -> None:
    """A terminal does, unless NO_COLOR is set; the option wins."""
    monkeypatch.setattr("os.environ", env)
    assert takes_color(stream, color) is takes


def test_a_text_in_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Codes surround it; elsewhere it is as it was."""
    monkeypatch.setattr("os.environ", {"TERM": "xterm"})
    assert Tint(Terminal())("text", "bold", "red") == "\033[1;31mtext\033[0m"
    assert Tint(Terminal())("text") == "text"
    assert Tint(io.StringIO())("text", "red") == "text"

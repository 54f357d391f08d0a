"""Which exit code a failure gets: the cluster's exit spec, matched in PID 1's own bounds.

The rules are those of OpenPAI's exit handler: entries in their order, a pattern matches when every
part of it does, the first entry with a matching pattern wins. Python's expressions can run away
where Go's cannot, so each has a time limit; one that exceeds it does not match, and is named.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from typing import Any, NamedTuple

SCHEMA_VERSION = 1
FLAGS = re.ASCII
EXIT_SPEC_FILE = "exit-spec.json"
"""Where init leaves the spec, in ``runtime.d``."""

NO_MATCH = 255
"""The exit code when nothing matches."""

ONE_PATTERN_S = 0.25
"""How long one expression may search; 10 MiB take a tenth of it."""


class Evidence(NamedTuple):
    """What is known of a failure.

    Attributes:
        exit_code: the user's command's own.
        user_log: the end of what it printed.
        platform_log: the end of ``runtime.log``.
        double_ecc: whether a GPU has an uncorrectable memory error.
    """

    exit_code: int
    user_log: bytes
    platform_log: bytes
    double_ecc: bool


class Match(NamedTuple):
    """What an exit spec says.

    Attributes:
        code: the container's exit code.
        user: where the user's log matched, from and to, in characters of its text; or None.
        platform: likewise in the platform's log.
        gpu: whether the GPU's state was asked for.
        stopped: expressions that took too long, as the cluster wrote them.
    """

    code: int
    user: tuple[int, int] | None
    platform: tuple[int, int] | None
    gpu: bool
    stopped: tuple[str, ...]


def text_of(log: bytes) -> str:
    """A log as text; what is not UTF-8 becomes the replacement character."""
    return log.decode("utf-8", "replace")


def match(spec: Mapping[str, Any], evidence: Evidence, unmatched: int = NO_MATCH) -> Match:
    """Find the first entry that fits.

    Runs in a process of its own: it uses SIGALRM.

    Args:
        spec: what init left of the cluster's exit spec.
        evidence: the failure.
        unmatched: the exit code when nothing matches.
    """
    logs = {
        "userLogRegex": _Log(evidence.user_log),
        "platformLogRegex": _Log(evidence.platform_log),
    }
    stopped: list[str] = []
    for entry in spec["specs"]:
        for pattern in entry["patterns"]:
            found = _matches(pattern, evidence, logs, stopped)
            if found is not None:
                return Match(
                    entry["code"],
                    found.get("userLogRegex"),
                    found.get("platformLogRegex"),
                    "gpuInfo" in pattern,
                    tuple(stopped),
                )
    return Match(unmatched, None, None, gpu=False, stopped=tuple(stopped))


def _matches(
    pattern: Mapping[str, Any],
    evidence: Evidence,
    logs: Mapping[str, _Log],
    stopped: list[str],
) -> dict[str, tuple[int, int]] | None:
    """Where the parts of a pattern match, or None when one does not; what costs least first."""
    if pattern.get("exitCode", evidence.exit_code) != evidence.exit_code:
        return None
    if "gpuInfo" in pattern:
        wanted = bool(pattern["gpuInfo"].get("nvidiaDoubleEccError", False))
        if wanted != evidence.double_ecc:
            return None
    spans: dict[str, tuple[int, int]] = {}
    for name, log in logs.items():
        if name not in pattern:
            continue
        try:
            span = log.find(pattern[name])
        except TimeoutError:
            stopped.append(pattern[name]["go"])
            return None
        if span is None:
            return None
        spans[name] = span
    return spans


class _Log:
    """A log that is searched many times.

    Args:
        data: its bytes.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._lower = data.lower()
        self._text: str | None = None
        self._seen: dict[str, bool] = {}

    def find(self, pattern: Mapping[str, Any]) -> tuple[int, int] | None:
        """Where an expression first matches.

        Raises:
            TimeoutError: it took too long.
        """
        words = pattern["any_of"]
        if words is not None and not any(map(self._holds, words)):
            return None
        if self._text is None:
            self._text = text_of(self._data)
        compiled = re.compile(pattern["regex"], FLAGS)
        before = signal.signal(signal.SIGALRM, _too_long)
        signal.setitimer(signal.ITIMER_REAL, ONE_PATTERN_S)
        try:
            found = compiled.search(self._text)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        return found.span() if found else None

    def _holds(self, word: str) -> bool:
        if word not in self._seen:
            self._seen[word] = word.encode() in self._lower
        return self._seen[word]


def _too_long(_number: int, _frame: object) -> None:
    raise TimeoutError

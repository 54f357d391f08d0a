"""Maps a failure to an exit code by the cluster's exit spec, with a time limit per expression.

The rules are those of OpenPAI's exit handler: it tries entries in order, a pattern matches if all
its parts match, and the first entry with a matching pattern wins. Python's expressions can take
exponential time, unlike Go's. So each has a time limit; one that exceeds it does not match and is
reported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from pairun.base.cpulimit import CpuBudget, CpuLimitError

_FLAGS = re.ASCII

NO_MATCH = 255
"""The exit code if no entry matches."""

ONE_PATTERN_S = 0.25
"""The limit of one expression, in seconds of CPU time; usual ones need a tenth of it for 10 MiB."""


class ExitEvidence(NamedTuple):
    """The data against which the exit spec is matched.

    Attributes:
        exit_code: of the user's command.
        user_log: the end of the command's output.
        platform_log: the end of ``runtime.log``.
        double_ecc: whether a GPU has an uncorrectable memory error.
    """

    exit_code: int
    user_log: bytes
    platform_log: bytes
    double_ecc: bool


class Match(NamedTuple):
    """The result of matching an exit spec.

    Attributes:
        code: the container's exit code.
        user: start and end of the match in the user's log, in characters; or None.
        platform: likewise in the platform's log.
        gpu: whether the pattern tests the GPU's state.
        stopped: expressions that exceeded the time limit, as the cluster wrote them.
    """

    code: int
    user: tuple[int, int] | None
    platform: tuple[int, int] | None
    gpu: bool
    stopped: tuple[str, ...]


def text_of(log: bytes) -> str:
    """Decode a log; invalid UTF-8 becomes the replacement character."""
    return log.decode("utf-8", "replace")


def match(spec: Mapping[str, Any], evidence: ExitEvidence, unmatched: int = NO_MATCH) -> Match:
    """Find the first entry of an exit spec that matches.

    Uses a timer of the process, so it must run in a separate one, in the main thread.

    Args:
        unmatched: the exit code if no entry matches.
    """
    logs = {
        "userLogRegex": _Log(evidence.user_log),
        "platformLogRegex": _Log(evidence.platform_log),
    }
    stopped: list[str] = []
    for entry in spec["specs"]:
        for pattern in entry["patterns"]:
            spans = _matches(pattern, evidence, logs, stopped)
            if spans is not None:
                return Match(
                    entry["code"],
                    spans.get("userLogRegex"),
                    spans.get("platformLogRegex"),
                    "gpuInfo" in pattern,
                    tuple(stopped),
                )
    return Match(unmatched, None, None, gpu=False, stopped=tuple(stopped))


def _matches(
    pattern: Mapping[str, Any], evidence: ExitEvidence, logs: Mapping[str, _Log], stopped: list[str]
) -> dict[str, tuple[int, int]] | None:
    """The spans at which a pattern's parts match, or None if one does not; cheapest part first."""
    if pattern.get("exitCode", evidence.exit_code) != evidence.exit_code:
        return None
    if "gpuInfo" in pattern:
        double_ecc = bool(pattern["gpuInfo"].get("nvidiaDoubleEccError", False))
        if double_ecc != evidence.double_ecc:
            return None
    spans: dict[str, tuple[int, int]] = {}
    for name, log in logs.items():
        if name not in pattern:
            continue
        try:
            span = log.find(pattern[name])
        except CpuLimitError:
            stopped.append(pattern[name]["go"])
            return None
        if span is None:
            return None
        spans[name] = span
    return spans


class _Log:
    """A log that is searched several times."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._lower = data.lower()
        self._text: str | None = None
        self._seen: dict[str, bool] = {}

    def find(self, pattern: Mapping[str, Any]) -> tuple[int, int] | None:
        """The span of an expression's first match, or None.

        Raises:
            CpuLimitError: the search exceeded the time limit.
        """
        words = pattern["any_of"]
        if words is not None and not any(map(self._holds, words)):
            return None
        if self._text is None:
            self._text = text_of(self._data)
        compiled = re.compile(pattern["regex"], _FLAGS)
        text = self._text
        first = CpuBudget(ONE_PATTERN_S).spend(lambda: compiled.search(text))
        return first.span() if first else None

    def _holds(self, word: str) -> bool:
        if word not in self._seen:
            self._seen[word] = word.encode() in self._lower
        return self._seen[word]

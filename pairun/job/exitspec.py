"""The cluster's exit spec: which exit code a failure gets, as OpenPAI's cluster configuration has it.

The file is read in the init phase, where YAML and positions are to be had, and handed over as JSON:
Go's regular expressions as Python's, each with the words of which one must be in the log at all, so
that PID 1 need not try most of them.
"""

from __future__ import annotations

import re
import re._constants as sre  # type: ignore[import-not-found]
import re._parser as sre_parser  # type: ignore[import-not-found]
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from pairun.errors import Problems, Source
from pairun.job.goregex import FLAGS, from_go
from pairun.playbook.checking import Ids, violations
from pairun.playbook.reading import Node, read_text
from pairun.runtime.exitspec import SCHEMA_VERSION

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "exit spec of a cluster",
    "type": "array",
    "items": {
        "type": "object",
        "required": ["containerExitCode", "patterns"],
        "properties": {
            "containerExitCode": {"type": "integer", "minimum": 1, "maximum": 255},
            "patterns": {
                "type": ["array", "null"],
                "items": {
                    "type": ["object", "null"],
                    "additionalProperties": False,
                    "properties": {
                        "exitCode": {"type": "integer"},
                        "userLogRegex": {"type": "string"},
                        "platformLogRegex": {"type": "string"},
                        "gpuInfo": {
                            "type": "object",
                            "additionalProperties": False,
                            "properties": {"nvidiaDoubleEccError": {"type": "boolean"}},
                        },
                    },
                },
            },
        },
    },
}
IDS = Ids("PR741", "PR742", "PR743")

_MIN_WORD = 3
_MAX_WORDS = 64


@attrs.frozen
class ExitSpec:
    """An exit spec.

    Attributes:
        text: as the cluster wrote it.
        data: as PID 1 reads it, plain data.
    """

    text: bytes
    data: Mapping[str, Any]


def read_exit_spec(source: Source, problems: Problems) -> ExitSpec:
    """Read an exit spec.

    Args:
        source: the text of ``runtime-exit-spec.yaml``.
        problems: takes what is wrong, as warnings: what cannot be used is left out, and a mistake of
            the cluster's does not keep jobs from running.

    Raises:
        PairunError: the text is no YAML.
    """
    node = read_text(source, "core")
    wrong = [
        p._replace(severity="warning") for p in violations(node, SCHEMA, IDS, whole=source.file)
    ]
    problems.extend(wrong)
    specs = [] if wrong else [_spec(entry, problems) for entry in node.elements()]
    data = {"schema": SCHEMA_VERSION, "specs": [s for s in specs if s["patterns"]]}
    return ExitSpec(source.text.encode(), data)


def _spec(entry: Node, problems: Problems) -> dict[str, Any]:
    code = entry.value["containerExitCode"]
    patterns = entry.value["patterns"]
    found = [_pattern(code, p, problems) for p in patterns.elements()]
    if not found:
        _say_empty(code, patterns, problems)
    return {"code": code.value, "patterns": [p for p in found if p]}


def _pattern(code: Node, node: Node, problems: Problems) -> dict[str, Any]:
    if not node.value:
        # The original takes it for one that every failure matches.
        _say_empty(code, node, problems)
        return {}
    out: dict[str, Any] = {}
    for name, value in node.items():
        if not name.endswith("Regex"):
            out[name] = value.plain()
            continue
        try:
            pattern = from_go(value.value)
            re.compile(pattern, FLAGS)
        except ValueError as e:
            problems.warning(
                "PR745",
                f"the pattern for exit code {code.value} cannot be used: {e}",
                value.place,
            )
            return {}
        out[name] = {"regex": pattern, "go": value.value, "any_of": words_needed(pattern)}
    return out


def _say_empty(code: Node, node: Node, problems: Problems) -> None:
    problems.warning(
        "PR744",
        f"the exit code {code.value} has an empty pattern, which is no reason to choose it",
        node.place,
    )


def words_needed(
    pattern: str, most: int = _MAX_WORDS, worth: Callable[[str], int] = len
) -> list[str] | None:
    """Words, in lower case, of which a text must hold one to match; None when nothing is known.

    Args:
        pattern: Python's, for `FLAGS`.
        most: how many words may be told.
        worth: how much a word tells; words that tell more are chosen.
    """
    found = _needed(sre_parser.parse(pattern, FLAGS), worth)
    if found is None or len(found) > most:
        return None
    return sorted(word.encode().lower().decode() for word in found)


def _needed(items: Iterable[Any], worth: Callable[[str], int]) -> set[str] | None:
    """The best of the sets of which one word each is needed, in a sequence."""
    sets: list[set[str]] = []
    word = ""

    def end_word() -> None:
        nonlocal word
        if len(word) >= _MIN_WORD:
            sets.append({word})
        word = ""

    for operation, argument in items:
        if operation is sre.LITERAL:
            word += chr(argument)
            continue
        end_word()
        inner: set[str] | None = None
        if operation is sre.SUBPATTERN:
            inner = _needed(argument[-1], worth)
        elif operation is sre.BRANCH:
            parts = [_needed(branch, worth) for branch in argument[1]]
            known = [p for p in parts if p is not None]
            inner = set().union(*known) if len(known) == len(parts) else None
        elif operation in (sre.MAX_REPEAT, sre.MIN_REPEAT) and argument[0] > 0:
            inner = _needed(argument[-1], worth)
        if inner:
            sets.append(inner)
    end_word()
    return max(sets, key=lambda s: min(map(worth, s)), default=None)

"""The cluster's exit spec: assigns exit codes to failures (OpenPAI's cluster configuration).

The init phase reads the file, because it has YAML and positions, and writes it as JSON for PID 1.
It translates Go's regular expressions to Python's. Each has words that must occur in the log, so
PID 1 can skip most of them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from pairun.base.paths import EXIT_SPEC_SCHEMA
from pairun.contract.kinds import shown
from pairun.diagnose.words import words_needed
from pairun.errors import PairunError, Place, Problem, Problems, Source
from pairun.job.goregex import GO_FLAGS, from_go
from pairun.playbook.document.checking import Format, violations
from pairun.playbook.document.reading import Node, read_text
from pairun.playbook.document.scalars import CORE
from pairun.secrets.shapes import yaml_lines

_ENTRY: dict[str, Any] = {
    "type": "object",
    "required": ["containerExitCode", "patterns"],
    "properties": {
        "containerExitCode": {"type": "integer", "minimum": 1, "maximum": 255},
        "patterns": {"type": ["array", "null"]},
    },
}
PATTERN: dict[str, Any] = {
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
}
_FORMAT = Format("PR741", "PR742", "PR743")
MAX_SEPARATE = 500
"""In a file with more entries, pairun looks for no single invalid one: each reads the lines before it."""


@attrs.frozen
class ExitSpec:
    """An exit spec.

    Attributes:
        text: as the cluster wrote it.
        data: plain data in the form that PID 1 reads.
    """

    text: bytes
    data: Mapping[str, Any]


def read_exit_spec(source: Source, problems: Problems) -> ExitSpec:
    """Read an exit spec; skip invalid entries and patterns, and keep the others.

    Raises:
        PairunError: the text is not a list, or no entry is YAML.
    """
    specs = [_spec(entry, problems) for entry in _entries(source, problems)]
    data = {"schema": EXIT_SPEC_SCHEMA, "specs": [s for s in specs if s["patterns"]]}
    return ExitSpec(source.text.encode(), data)


def _entries(source: Source, problems: Problems) -> list[Node]:
    try:
        document = read_text(source, CORE)
    except PairunError:
        entries = list(_separate_entries(source, problems))
        if not entries:
            raise
        return entries
    if not isinstance(document.value, list):
        message = f"{source.file} must be a list of entries, not {shown(document.value)}"
        raise PairunError.of(_FORMAT.kind, message, document.place)
    return document.value


def _separate_entries(source: Source, problems: Problems) -> Iterator[Node]:
    """Read each entry of a block sequence by itself, without the anchors of other entries."""
    lines = yaml_lines(source.text)
    indents = [len(line) - len(line.lstrip(" ")) for line in lines]
    items = [n for n, line in enumerate(lines) if line.lstrip(" ").startswith("-")]
    starts = [n for n in items if indents[n] == indents[items[0]] and lines[n].strip() != "---"]
    if len(starts) > MAX_SEPARATE:
        return
    for start, end in itertools.pairwise([*starts, len(lines)]):
        # Blank lines before the entry keep the line numbers.
        text = "\n" * start + "\n".join(lines[start:end])
        try:
            yield from read_text(Source(source.file, source.layer, text), CORE).elements()
        except PairunError as e:
            # libyaml may find the mistake only at the entry's end.
            begin = ("the entry begins here", Place(source, start + 1, indents[start] + 1))
            found = (p._replace(also=(*p.also, begin)) for p in e.problems)
            problems.extend(_skipped(found, "entry"))


def _skipped(found: Iterable[Problem], part: str) -> Iterator[Problem]:
    for problem in found:
        yield problem._replace(message=f"{problem.message}; pairun skips this {part}")


def _is_invalid(node: Node, schema: Mapping[str, Any], part: str, problems: Problems) -> bool:
    found = list(violations(node, schema, _FORMAT, whole=f"the {part}"))
    problems.extend(_skipped(found, part))
    return bool(found)


def _spec(entry: Node, problems: Problems) -> dict[str, Any]:
    if _is_invalid(entry, _ENTRY, "entry", problems):
        return {"patterns": []}
    code = entry.value["containerExitCode"]
    patterns = entry.value["patterns"]
    if not patterns.elements():
        _say_empty(code, patterns, problems)
    compiled = [_pattern(code, p, problems) for p in patterns.elements()]
    return {"code": code.value, "patterns": [p for p in compiled if p]}


def _pattern(code: Node, node: Node, problems: Problems) -> dict[str, Any]:
    if _is_invalid(node, PATTERN, "pattern", problems):
        return {}
    if not node.value:
        # The original runtime treats it as a pattern that every failure matches.
        _say_empty(code, node, problems)
        return {}
    out: dict[str, Any] = {}
    for name, value in node.items():
        if not name.endswith("Regex"):
            out[name] = value.plain()
            continue
        try:
            pattern = from_go(value.value)
            re.compile(pattern, GO_FLAGS)
        except ValueError as e:
            message = f"the pattern for exit code {code.value} cannot be used: {e}; pairun skips it"
            problems.warning("PR745", message, value.place)
            return {}
        out[name] = {"regex": pattern, "go": value.value, "any_of": words_needed(pattern)}
    return out


def _say_empty(code: Node, node: Node, problems: Problems) -> None:
    message = f"the exit code {code.value} has an empty pattern, which matches nothing"
    problems.warning("PR744", message, node.place)

"""The cluster's exit spec: assigns exit codes to failures (OpenPAI's cluster configuration).

The init phase reads the file, because it has YAML and positions, and writes it as JSON for PID 1.
It translates Go's regular expressions to Python's. Each has words that must occur in the log, so
PID 1 can skip most of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pairun.base.records import record
from pairun.diagnose.words import words_needed
from pairun.errors import Problems, Source
from pairun.formats.goregex import FLAGS, from_go
from pairun.playbook.document.checking import Ids, violations
from pairun.playbook.document.reading import Node, read_text
from pairun.playbook.document.scalars import CORE
from pairun.runtime.exitmatching import SCHEMA_VERSION

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


@record(kw_only=False)
class ExitSpec:
    """An exit spec.

    Attributes:
        text: as the cluster wrote it.
        data: plain data in the form that PID 1 reads.
    """

    text: bytes
    data: Mapping[str, Any]


def read_exit_spec(source: Source, problems: Problems) -> ExitSpec:
    """Read an exit spec.

    Args:
        source: the text of ``runtime-exit-spec.yaml``.
        problems: takes every error as a warning: invalid parts are skipped, and must not keep
            jobs from running.

    Raises:
        PairunError: the text is not YAML.
    """
    node = read_text(source, CORE)
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
    compiled = [_pattern(code, p, problems) for p in patterns.elements()]
    if not compiled:
        _say_empty(code, patterns, problems)
    return {"code": code.value, "patterns": [p for p in compiled if p]}


def _pattern(code: Node, node: Node, problems: Problems) -> dict[str, Any]:
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
        f"the exit code {code.value} has an empty pattern, which matches nothing",
        node.place,
    )

"""A SARIF log is valid, masked, and says what the text says."""

from __future__ import annotations

import os
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairun.report.github import workflow_commands
from pairun.report.sarif import sarif_log


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required,
        "properties": properties,
    }


_TEXT = {"type": "string"}
_MESSAGE = _object(["text"], text=_TEXT)
_NUMBER = {"type": "integer", "minimum": 1}
_LOCATION = _object(
    ["physicalLocation"],
    message=_MESSAGE,
    physicalLocation=_object(
        ["artifactLocation"],
        artifactLocation=_object(
            ["uri"], uri={**_TEXT, "pattern": "^[!-~]+$", "format": "uri-reference"}
        ),
        region=_object(["startLine"], startLine=_NUMBER, startColumn=_NUMBER),
    ),
)
_LOCATIONS = {"type": "array", "items": _LOCATION}
SCHEMA = _object(
    ["version", "runs"],
    **{"$schema": _TEXT},
    version={"enum": ["2.1.0"]},
    runs={
        "type": "array",
        "items": _object(
            ["tool"],
            tool=_object(
                ["driver"],
                driver=_object(
                    ["name"],
                    name=_TEXT,
                    version=_TEXT,
                    rules={
                        "type": "array",
                        "uniqueItems": True,
                        "items": _object(
                            ["id"], id=_TEXT, shortDescription=_MESSAGE, help=_MESSAGE
                        ),
                    },
                ),
            ),
            columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
            results={
                "type": "array",
                "items": _object(
                    ["message"],
                    ruleId=_TEXT,
                    ruleIndex={"type": "integer", "minimum": -1},
                    level={"enum": ["none", "note", "warning", "error"]},
                    message=_MESSAGE,
                    locations=_LOCATIONS,
                    relatedLocations={**_LOCATIONS, "uniqueItems": True},
                ),
            },
        ),
    },
)
"""What a log of pairun uses of OASIS's sarif-schema-2.1.0.json, with its limits."""


def problem(**changes: Any) -> dict[str, Any]:
    """A problem as data."""
    return {
        "id": "PR402",
        "severity": "error",
        "message": "a job may not",
        "file": "job.yaml",
        "line": 3,
        "column": 5,
        "layer": "job",
        "hint": "ask",
        "also": [{"what": "the policy", "file": "/etc/policy.yaml", "line": 1, "column": 2}],
        **changes,
    }


def test_a_result_for_each_problem() -> None:
    """With its rule, its level, its place, and the places beside it."""
    other = problem(id="PR903", severity="warning", hint=None, also=[], line=0, file="a b:c%é.yaml")
    log = sarif_log([problem(), other, problem(file=None, line=None, also=[])], "0.1.0")
    jsonschema.validate(log, SCHEMA)
    (run,) = log["runs"]
    assert [r["id"] for r in run["tool"]["driver"]["rules"]] == ["PR402", "PR903"]
    first, second, third = run["results"]
    assert first["message"]["text"] == "a job may not\nhelp: ask"
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "job.yaml"},
        "region": {"startLine": 3, "startColumn": 5},
    }
    related = first["relatedLocations"][0]
    assert related["message"]["text"] == "the policy"
    assert related["physicalLocation"]["artifactLocation"]["uri"] == "file:///etc/policy.yaml"
    assert (second["ruleIndex"], second["level"]) == (1, "warning")
    assert second["locations"] == [
        {"physicalLocation": {"artifactLocation": {"uri": "a%20b%3Ac%25%C3%A9.yaml"}}}
    ]
    assert "locations" not in third


def test_nothing_wrong() -> None:
    """A log without results is valid, too: it closes what a scanner had open."""
    log = sarif_log([], "0.1.0")
    jsonschema.validate(log, SCHEMA)
    assert log["runs"][0]["results"] == []


NAMES = st.binary(min_size=1).filter(lambda b: 0 not in b).map(os.fsdecode)
"""Any name of a file."""
HOSTILE = [
    ("a%b\r\nc", "a%25b\N{REPLACEMENT CHARACTER}%0Ac"),
    ("::set-env name=X::y", "::set-env name=X::y"),
    ("\n::error::x", "%0A::error::x"),
]


@pytest.mark.parametrize(("message", "written"), HOSTILE)
def test_a_workflow_command_holds_one_line(message: str, written: str) -> None:
    """What could begin another command is escaped."""
    (line,) = workflow_commands([problem(message=message, hint=None)])
    assert line == f"::error file=job.yaml,line=3,col=5,title=PR402::{written}"


def test_properties_of_a_workflow_command() -> None:
    """A path may hold what separates properties; standard input has no path."""
    (line,) = workflow_commands([problem(file="a,b:c%.yaml")])
    assert (
        line == "::error file=a%2Cb%3Ac%25.yaml,line=3,col=5,title=PR402::a job may not%0Ahelp: ask"
    )
    (line,) = workflow_commands([problem(file="-", severity="warning", hint=None)])
    assert line == "::warning title=PR402::a job may not"


@given(st.text(), st.text(), st.none() | NAMES)
def test_any_text(message: str, hint: str, file: str | None) -> None:
    """Whatever a message or a name holds, both formats stay whole."""
    p = problem(message=message, hint=hint, file=file)
    (line,) = workflow_commands([p])
    assert "\n" not in line
    jsonschema.validate(sarif_log([p], "0"), SCHEMA)

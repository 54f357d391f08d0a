"""Problems as a SARIF log, which code scanners and editors read (OASIS SARIF 2.1.0)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pairun.catalogue import CATALOGUE

SARIF_VERSION = "2.1.0"
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif_log(problems: Sequence[Mapping[str, Any]], version: str) -> dict[str, Any]:
    """Return one SARIF run with a result per problem and a rule per id.

    Args:
        problems: the masked data that `problem_data` returns.
        version: the version of pairun.
    """
    ids = sorted({p["id"] for p in problems})
    driver = {"name": "pairun", "version": version, "rules": [_rule(id_) for id_ in ids]}
    return {
        "$schema": _SCHEMA,
        "version": SARIF_VERSION,
        "runs": [
            {
                "tool": {"driver": driver},
                "columnKind": "unicodeCodePoints",
                "results": [_result(p, ids.index(p["id"])) for p in problems],
            }
        ],
    }


def _rule(id_: str) -> dict[str, Any]:
    kind = CATALOGUE[id_]
    return {
        "id": id_,
        "shortDescription": {"text": kind.title},
        "help": {"text": kind.advice},
    }


def _result(p: Mapping[str, Any], rule: int) -> dict[str, Any]:
    text = p["message"] + (f"\nhelp: {p['hint']}" if p["hint"] else "")
    result: dict[str, Any] = {
        "ruleId": p["id"],
        "ruleIndex": rule,
        "level": p["severity"],
        "message": {"text": text},
    }
    if p["file"] is not None:
        result["locations"] = [_location(p["file"], p["line"], p["column"])]
    if p["also"]:
        result["relatedLocations"] = [
            {"message": {"text": a["what"]}, **_location(a["file"], a["line"], a["column"])}
            for a in p["also"]
        ]
    return result


def _location(file: str, line: int, column: int) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(file)}}
    if line:  # 0 means the whole file
        physical["region"] = {"startLine": line, "startColumn": column}
    return {"physicalLocation": physical}


def _uri(file: str) -> str:
    """A file's address: a relative path stays relative (section 3.4.3), so scanners find it."""
    name = os.path.normpath(file)
    return Path(name).as_uri() if os.path.isabs(name) else quote(os.fsencode(name))

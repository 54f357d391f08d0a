"""The JSON Schemas of ``extras.pairun.pod`` and of a policy's section ``pod``, from the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pairun.playbook.pod.table import POD_SETTINGS, PodSetting


def pod_schema() -> dict[str, Any]:
    """The schema of ``extras.pairun.pod``: every setting, and under ``roles`` those of a role."""
    schema = settings_schema(POD_SETTINGS.values())
    role = settings_schema(s for s in POD_SETTINGS.values() if s.per_role)
    schema["properties"]["roles"] = {"type": "object", "additionalProperties": role}
    return schema


def settings_schema(settings: Iterable[PodSetting]) -> dict[str, Any]:
    """The schema of a mapping with some settings; null restores a default."""
    root: dict[str, Any] = _section()
    for setting in settings:
        if setting.schema is None:
            continue
        *sections, name = setting.key.split(".")
        section = root
        for each in sections:
            section = section["properties"].setdefault(each, _section())
        section["properties"][name] = _or_null(setting.schema)
    return root


def policy_schema() -> dict[str, Any]:
    """The schema of a policy's section ``pod``."""
    names = {"anyOf": [{"const": "*"}, {"type": "array", "items": {"type": "string"}}]}
    texts = {"type": "array", "items": {"type": "string"}}
    limit = {"type": ["string", "number", "object"]}
    bound = {
        "type": "object",
        "properties": {"min": limit, "max": limit, "one_of": {"type": "array"}, "none_of": texts},
        "additionalProperties": False,
        "minProperties": 1,
    }
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "defaults": settings_schema(POD_SETTINGS.values()),
            "job_may": names,
            "bounds": {"type": "object", "additionalProperties": bound},
        },
    }


def _section() -> dict[str, Any]:
    return {"type": "object", "properties": {}, "additionalProperties": False}


def _or_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    if "enum" in schema:
        return {**schema, "enum": [*schema["enum"], None]}
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return {**schema, "type": [*kinds, "null"]}

"""The job protocol v2 as a JSON Schema: the single description of a job file's content.

It accepts what the schema of OpenPAI's REST server accepts, except numbers of ports with which no
Pod can start. pairun's additions (callbacks
without ``plugin``, ``require``) are possible because prerequisites allow further keys.
"""

from __future__ import annotations

from typing import Any

from pairun.kube.ports import MAX_PORTS

Schema = dict[str, Any]

# Python's `$` also matches before a final newline, ECMAScript's does not.
NAME_PATTERN = r"^[a-zA-Z0-9_-]+$(?!\n)"
IDENTIFIER_PATTERN = r"^[a-zA-Z_][a-zA-Z0-9_]*$(?!\n)"

_IDENTIFIER = "use a letter or '_', then letters, digits and '_'"
_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_COMMANDS: Schema = {**_TEXTS, "minItems": 1}
_VERSION: Schema = {"enum": ["2", 2]}
_COMMON: Schema = {
    "protocolVersion": _VERSION,
    "name": {
        "type": "string",
        "pattern": NAME_PATTERN,
        "maxLength": 255,
        "$comment": "letters, digits, '_' and '-'",
    },
    "version": {"type": ["string", "number"]},
    "contributor": _TEXT,
    "description": _TEXT,
}


def _when_type(types: list[str], then: Schema) -> Schema:
    condition = {"properties": {"type": {"enum": types}}, "required": ["type"]}
    return {"if": condition, "then": then}


_AUTH: Schema = {
    "type": "object",
    "properties": {"username": _TEXT, "password": _TEXT, "registryuri": _TEXT},
}
_PREREQUISITE: Schema = {
    "type": "object",
    "properties": {**_COMMON, "type": {"enum": ["dockerimage", "script", "data", "output"]}},
    "required": ["name", "type"],
    "allOf": [
        _when_type(
            ["dockerimage"],
            {
                "properties": {**_COMMON, "type": {}, "uri": _TEXT, "auth": _AUTH},
                "required": ["uri"],
                "additionalProperties": False,
            },
        ),
        _when_type(["script", "output"], {"properties": {"uri": _TEXT}}),
        _when_type(["data"], {"properties": {"uri": _TEXTS}}),
        _when_type(
            ["script", "output", "data"], {"properties": {"plugin": _TEXT, "require": _TEXTS}}
        ),
    ],
}
_TASK_ROLE: Schema = {
    "type": "object",
    "properties": {
        "protocolVersion": _VERSION,
        "instances": {"type": "integer", "minimum": 1},
        "completion": {
            "type": "object",
            "properties": {
                "minFailedInstances": {"type": ["integer", "null"]},
                "minSucceededInstances": {"type": ["integer", "null"]},
            },
            "additionalProperties": False,
        },
        "taskRetryCount": {"type": "integer"},
        "prerequisites": _TEXTS,
        "dockerImage": _TEXT,
        "data": _TEXT,
        "output": _TEXT,
        "script": _TEXT,
        # Allow further keys, because the REST server's schema fails to forbid them.
        "extraContainerOptions": {"type": "object", "properties": {"shmMB": {"type": "integer"}}},
        "resourcePerInstance": {
            "type": "object",
            "properties": {
                "cpu": {"type": "integer"},
                "memoryMB": {"type": "integer"},
                "gpu": {"type": "integer"},
                "ports": {
                    "type": ["object", "null"],
                    "patternProperties": {
                        IDENTIFIER_PATTERN: {"type": "integer", "minimum": 0, "maximum": MAX_PORTS}
                    },
                    "minProperties": 1,
                    "additionalProperties": False,
                    "$comment": _IDENTIFIER,
                },
            },
            "required": ["cpu", "memoryMB", "gpu"],
            "additionalProperties": False,
        },
        "commands": _COMMANDS,
    },
    "required": ["dockerImage", "resourcePerInstance", "commands"],
    "additionalProperties": False,
}
ROLE_KEYS = frozenset(_TASK_ROLE["properties"])
"""The keys of a role."""


def _by_role(entry: Schema) -> Schema:
    return {
        "type": "object",
        "patternProperties": {IDENTIFIER_PATTERN: entry},
        "minProperties": 1,
        "additionalProperties": False,
        "$comment": _IDENTIFIER,
    }


SCHEMA: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "OpenPAI job protocol v2",
    "type": "object",
    "properties": {
        **_COMMON,
        "type": {"enum": ["job"]},
        "jobType": {"enum": ["inference", "training", "others"]},
        "prerequisites": {"type": "array", "items": _PREREQUISITE, "minItems": 1},
        "parameters": {"type": "object"},
        "secrets": {"type": "object"},
        "jobRetryCount": {"type": "integer", "minimum": 0},
        "taskRoles": _by_role(_TASK_ROLE),
        "deployments": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {
                    "protocolVersion": _VERSION,
                    "name": _COMMON["name"],
                    "taskRoles": _by_role(
                        {
                            "type": "object",
                            "properties": {"preCommands": _COMMANDS, "postCommands": _COMMANDS},
                            "additionalProperties": False,
                        }
                    ),
                },
                "required": ["name", "taskRoles"],
            },
        },
        "defaults": {"type": "object", "properties": {"deployment": _TEXT}},
        "extras": {"type": "object"},
    },
    "required": ["protocolVersion", "name", "type", "taskRoles"],
    "additionalProperties": False,
}


def home_of(key: str) -> str | None:
    """Where a key belongs, as text; None for an unknown key and for one that fits several places.

    Args:
        key: a key of the job, of a role, or of a mapping in a role.
    """
    if key in _COMMON:
        return None
    if key in ROLE_KEYS:
        return "a role of `taskRoles`"
    for name, schema in _TASK_ROLE["properties"].items():
        if key in schema.get("properties", ()):
            return f"`{name}` of a role"
    return "the job itself, beside `taskRoles`" if key in SCHEMA["properties"] else None

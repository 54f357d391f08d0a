"""The job protocol v2 as a JSON Schema: the single description of a job file's content.

It accepts what the schema of OpenPAI's REST server accepts, except numbers of ports with which no
Pod can start. pairun's additions (callbacks
without ``plugin``, ``require``) are possible because prerequisites allow further keys.
"""

from __future__ import annotations

import copy
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


JOB_SCHEMA: Schema = {
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
    """Where a key belongs, as text; None for an unknown key and for one that fits several places."""
    if key in _COMMON:
        return None
    if key in ROLE_KEYS:
        return "a role of `taskRoles`"
    for name, schema in _TASK_ROLE["properties"].items():
        if key in schema.get("properties", ()):
            return f"`{name}` of a role"
    return "the job itself, beside `taskRoles`" if key in JOB_SCHEMA["properties"] else None


# --- for editors -----------------------------------------------------------------------------------

_JOB: Schema = {
    "protocolVersion": "The version of the job protocol: 2.",
    "name": "The job's name: letters, digits, - and _.",
    "version": "A version of your own, for people.",
    "contributor": "Who wrote the job, for people.",
    "description": "What the job does, for people.",
    "type": "Always job.",
    "jobType": "What kind of job it is, for the portal.",
    "prerequisites": "Images, data, scripts and outputs that roles refer to by name.",
    "parameters": "Values for the commands: <% $parameters.NAME %>.",
    "secrets": "Secret values for commands and plugins: <% $secrets.NAME %>. No log shows them.",
    "jobRetryCount": "How often the whole job is retried after a failure.",
    "taskRoles": "The roles by name. Each runs some instances with the same commands.",
    "deployments": "Sets of commands before and after those of the roles; defaults.deployment chooses one.",
    "defaults": "The default deployment and virtual cluster.",
    "extras": "Plugins, storages, and pairun's section for overrides.",
}
_ROLE: Schema = {
    "instances": "How many containers run the commands; 1 by default.",
    "completion": "When the role completes the job. A value of -1 means never.",
    "taskRetryCount": "How often a failed instance is retried.",
    "prerequisites": "Names of prerequisites whose actions run in this role.",
    "dockerImage": "The name of a prerequisite of type dockerimage.",
    "data": "The name of a prerequisite of type data.",
    "output": "The name of a prerequisite of type output.",
    "script": "The name of a prerequisite of type script.",
    "extraContainerOptions": "shmMB: the size of /dev/shm in MB.",
    "resourcePerInstance": "CPUs, memory in MB, GPUs, and ports by label, of one instance.",
    "commands": "The lines of one shell script: the command of each instance.",
}
_COMPLETION: Schema = {
    "minFailedInstances": "The job fails when this many instances have failed; 1 by default.",
    "minSucceededInstances": "The job succeeds when this many instances have succeeded.",
}
_RESOURCES: Schema = {
    "cpu": "CPUs.",
    "memoryMB": "Memory in MB.",
    "gpu": "GPUs.",
    "ports": "How many ports each label gets: {http: 1}.",
}


def editor_schema(overrides: Schema) -> Schema:
    """The schema of job files with descriptions; ``overrides`` is that of ``extras.pairun``."""
    schema = copy.deepcopy(JOB_SCHEMA)
    (role,) = schema["properties"]["taskRoles"]["patternProperties"].values()
    of_role = role["properties"]
    for properties, meanings in (
        (schema["properties"], _JOB),
        (of_role, _ROLE),
        (of_role["completion"]["properties"], _COMPLETION),
        (of_role["resourcePerInstance"]["properties"], _RESOURCES),
    ):
        for name, meaning in meanings.items():
            properties[name] = {**properties[name], "description": meaning}
    section = {key: value for key, value in overrides.items() if key not in ("$schema", "$defs")}
    schema["properties"]["extras"]["properties"] = {"pairun": section}
    return {**schema, "$defs": overrides["$defs"]}

"""A JSON Schema of the job files of OpenPAI on YARN.

It is the REST server's own, with the limits from its manual; keys with a default are optional.
"""

from __future__ import annotations

from pairun.formats.protocol import Schema

_TEXT: Schema = {"type": "string"}
_NEEDED: Schema = {"type": "string", "minLength": 1}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_FROM_ONE: Schema = {"type": "integer", "minimum": 1}
_FROM_ONE_OR_NULL: Schema = {"type": ["integer", "null"], "minimum": 1}

_PORT: Schema = {
    "type": "object",
    "properties": {"label": _NEEDED, "beginAt": _COUNT, "portNumber": _COUNT},
    "required": ["label"],
    "additionalProperties": False,
}
_ROLE: Schema = {
    "type": "object",
    "properties": {
        "name": _NEEDED,
        "taskNumber": _FROM_ONE,
        "cpuNumber": _COUNT,
        "memoryMB": _COUNT,
        "shmMB": _COUNT,
        "gpuNumber": _COUNT,
        "portList": {"type": "array", "items": _PORT},
        "command": _NEEDED,
        "minFailedTaskCount": _FROM_ONE_OR_NULL,
        "minSucceededTaskCount": _FROM_ONE_OR_NULL,
    },
    "required": ["name", "command"],
    "additionalProperties": False,
}
SCHEMA: Schema = {
    "type": "object",
    "properties": {
        "jobName": _NEEDED,
        "image": _NEEDED,
        "authFile": _TEXT,
        "dataDir": _TEXT,
        "outputDir": _TEXT,
        "codeDir": _TEXT,
        "virtualCluster": _TEXT,
        "taskRoles": {"type": "array", "items": _ROLE, "minItems": 1},
        "gpuType": _TEXT,
        "killAllOnCompletedTaskNumber": _COUNT,
        "retryCount": _COUNT,
        "jobEnvs": {
            "type": "object",
            "additionalProperties": {"type": ["string", "number", "boolean"]},
        },
        "extras": {"type": "object"},
    },
    "required": ["jobName", "image", "taskRoles"],
    "additionalProperties": False,
}

"""The meaning of each key of a job file, for editors: `protocol`'s schema with descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pairun.job.protocol import SCHEMA, Schema

_JOB: Mapping[str, str] = {
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
_ROLE: Mapping[str, str] = {
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
_COMPLETION: Mapping[str, str] = {
    "minFailedInstances": "The job fails when this many instances have failed; 1 by default.",
    "minSucceededInstances": "The job succeeds when this many instances have succeeded.",
}
_RESOURCES: Mapping[str, str] = {
    "cpu": "CPUs.",
    "memoryMB": "Memory in MB.",
    "gpu": "GPUs.",
    "ports": "How many ports each label gets: {http: 1}.",
}


def editor_schema(overrides: Schema) -> Schema:
    """The schema of job files with descriptions, including the schema of ``extras.pairun``.

    Args:
        overrides: the schema of ``extras.pairun``.
    """
    role = SCHEMA["properties"]["taskRoles"]["patternProperties"]
    (pattern, entry), *_ = role.items()
    entry = _described(entry, _ROLE)
    entry["properties"]["completion"] = {
        **_described(entry["properties"]["completion"], _COMPLETION),
        "description": _ROLE["completion"],
    }
    entry["properties"]["resourcePerInstance"] = {
        **_described(entry["properties"]["resourcePerInstance"], _RESOURCES),
        "description": _ROLE["resourcePerInstance"],
    }
    schema = _described(SCHEMA, _JOB)
    schema["properties"]["taskRoles"]["patternProperties"] = {pattern: entry}
    section = {key: value for key, value in overrides.items() if key not in ("$schema", "$defs")}
    schema["properties"]["extras"]["properties"] = {"pairun": section}
    return {**schema, "$defs": overrides["$defs"]}


def _described(schema: Schema, meanings: Mapping[str, str]) -> dict[str, Any]:
    """A copy of an object's schema with a description of each key."""
    properties = {
        name: {**its, "description": meanings[name]} if name in meanings else its
        for name, its in schema["properties"].items()
    }
    return {**schema, "properties": properties}

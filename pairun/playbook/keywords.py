"""Every keyword of the format: its meaning, its schema, and where it is allowed.

This table is the single source for the validator, for ``pairun schema`` and for the keyword
reference.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from pairun.base.durations import DURATION_PATTERN
from pairun.module import FAILURE_KINDS
from pairun.plan import EVENTS, RUN_ON

Where = Literal["playbook", "task", "handler", "group", "operation"]

_DURATION: dict[str, Any] = {"type": "string", "pattern": rf"^{DURATION_PATTERN}$|\{{\{{"}
_TEXTS: dict[str, Any] = {
    "type": "object",
    "additionalProperties": {"type": ["string", "number", "boolean"]},
}
_ID: dict[str, Any] = {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_.-]*$"}
_KINDS: dict[str, Any] = {"enum": list(FAILURE_KINDS)}


class Keyword(NamedTuple):
    """One keyword.

    Attributes:
        places: where it is allowed, separated by spaces.
        schema: JSON Schema of its value.
        example: a line or two of YAML.
    """

    name: str
    places: str
    schema: Mapping[str, Any]
    meaning: str
    default: str = ""
    example: str = ""

    @property
    def where(self) -> frozenset[Where]:
        """Where it is allowed."""
        return frozenset(self.places.split())  # type: ignore[arg-type]


KEYWORDS: dict[str, Keyword] = {
    k.name: k
    for k in (
        Keyword("phase", "playbook", {"enum": ["init", "runtime"]},
                 "The phase the playbook belongs to.", "required", "phase: init"),
        Keyword("grace", "playbook", _DURATION,
                 "Time between TERM and KILL that the platform gives the container.",
                 "30s, or PAIRUN_GRACE", "grace: 60s"),
        Keyword("patches", "playbook", {"type": "array", "items": {"type": "object"}},
                 "Operations on the playbook of a lower layer, instead of tasks.", "none",
                 "patches: [{disable: port_check}]"),
        Keyword("id", "task handler", _ID,
                 "Stable handle for patches, results and the journal; unique over both phases.",
                 "the module's name", "id: fetch_code"),
        Keyword("name", "task handler", {"type": "string", "minLength": 1},
                 "One sentence for people.", "required", "name: The code is there"),
        Keyword("when", "task handler", {"type": ["string", "boolean"]},
                 "An expression; the task is skipped when it is false.", "true",
                 "when: job.role.instances > 1"),
        Keyword("vars", "task handler playbook", {"type": "object"},
                 "Names for expressions, for this task or the whole playbook.", "none",
                 "vars: {depth: 1}"),
        Keyword("environment", "task handler", _TEXTS,
                 "Variables that the task's commands see.", "none",
                 "environment: {HTTP_PROXY: 'http://proxy:3128'}"),
        Keyword("retries", "task handler", {"type": ["integer", "string"], "minimum": 0, "maximum": 1000,
                 "pattern": r"\{\{", "$comment": "a whole number"},
                 "Further attempts after the first.", "0", "retries: 5"),
        Keyword("delay", "task handler", _DURATION,
                 "Base of the wait between attempts: exponential, full jitter, at most 5 minutes.",
                 "1s", "delay: 2s"),
        Keyword("retry_on", "task handler", {"type": "array", "items": _KINDS, "minItems": 1},
                 "Kinds of failure that are retried.", "[transient, timeout, conflict]",
                 "retry_on: [transient]"),
        Keyword("timeout", "task handler", _DURATION, "Limit of one attempt.", "none",
                 "timeout: 2m"),
        Keyword("deadline", "task handler", _DURATION,
                 "Limit of the task with all its attempts and waits.", "none", "deadline: 10m"),
        Keyword("failure_policy", "task handler", {"enum": ["fail", "ignore"]},
                 "Whether a failure fails the phase.", "fail; of an exit handler: ignore",
                 "failure_policy: ignore"),
        Keyword("run_on", "task", {"enum": list(RUN_ON)},
                 "Which instances of the job run the task; the others take over its result.",
                 "all", "run_on: first_of_role"),
        Keyword("on_exit", "task", {"type": "array", "items": {"type": "object"}, "minItems": 1},
                 "Exit handlers that the task registers; they run in reverse order.", "none",
                 "on_exit: [{name: Say goodbye, event: always, cmd: {argv: [echo, bye]}}]"),
        Keyword("event", "handler",
                 {"anyOf": [{"enum": [*EVENTS, "always"]},
                            {"type": "array", "items": {"enum": list(EVENTS)}, "minItems": 1}]},
                 "The outcomes of the phase that an exit handler runs for.", "required",
                 "event: [failure, signal]"),
        Keyword("exit_codes", "task handler",
                 {"type": "object", "propertyNames": _KINDS,
                  "additionalProperties": {"type": "integer", "minimum": 1, "maximum": 255}},
                 "Kind of failure to the exit code of the container.", "init 1, runtime 255",
                 "exit_codes: {conflict: 253}"),
        Keyword("locked", "task handler", {"type": "boolean"},
                 "No layer above may change the task.", "false", "locked: true"),
        Keyword("parallel", "group", {"type": "string", "minLength": 1},
                 "One sentence for a group of tasks that run at once.", "",
                 "parallel: Check and fetch"),
        Keyword("tasks", "playbook group", {"type": "array", "items": {"type": "object"}},
                 "The tasks, in order.", "required", "tasks: [...]"),
        Keyword("patch", "operation", _ID,
                 "Change keywords of the task with this id.", "",
                 "patch: image_check\nretries: 10"),
        Keyword("args", "operation", {"type": "object"},
                 "Arguments of the patched task's module.", "none", "args: {policy: warn}"),
        Keyword("disable", "operation", _ID, "Remove the task with this id.", "",
                 "disable: port_check"),
        Keyword("before", "operation", _ID, "Insert a task before the one with this id.", "",
                 "before: user_command\nname: Say hello\ncmd: {script: echo hello}"),
        Keyword("after", "operation", _ID, "Insert a task after the one with this id.", "",
                 "after: mount_storage\nname: List the data\ncmd: {script: ls /mnt}"),
        Keyword("append", "operation", {"type": ["null", "boolean"]},
                 "Insert a task at the end of the phase, before the user's command.", "",
                 "append:\nname: Say hello\ncmd: {script: echo hello}"),
    )
}  # fmt: skip

OPERATIONS = ("patch", "disable", "before", "after", "append")

FOREIGN: dict[str, str] = {
    "ignore_errors": "failure_policy: ignore",
    "ignoreErrors": "failure_policy: ignore",
    "register": "results.<id> (every task has one)",
    "block": "parallel + tasks, or plain tasks",
    "rescue": "on_exit with event: failure",
    "always": "on_exit with event: always",
    "notify": "on_exit",
    "handlers": "on_exit",
    "become": "nothing: see `pairun doc MODULE` for the privileges a module needs",
    "become_user": "nothing: see `pairun doc MODULE` for the privileges a module needs",
    "with_items": "nothing: there are no loops; a script in cmd can have one",
    "loop": "nothing: there are no loops; a script in cmd can have one",
    "until": "retries (and the module's kinds of failure)",
    "changed_when": "creates or unless of cmd",
    "failed_when": "ok_codes of cmd",
    "env": "environment",
    "variables": "vars",
    "if": "when",
    "condition": "when",
    "onError": "failure_policy",
    "continueOnError": "failure_policy: ignore",
    "failurePolicy": "failure_policy",
    "exitCodes": "exit_codes",
    "onExit": "on_exit",
    "retryOn": "retry_on",
    "retry": "retries",
    "attempts": "retries (attempts after the first)",
    "tags": "nothing: there are no tags",
    "hosts": "nothing: a playbook runs in its own Pod",
    "run_once": "run_on: first_of_job",
    "delegate_to": "nothing: a playbook runs in its own Pod",
    "args": "the module's own key, or args in a patch",
    "command": "cmd",
    "shell": "cmd with script",
}
"""Words of Ansible and of camelCase formats, and pairun's words for them."""


EXPORT = "export NAME=value in the role's commands"
"""How a job sets a variable for the user's command, whatever the policy allows."""


@functools.cache
def keywords_of(where: Where) -> Mapping[str, Keyword]:
    """The keywords of a playbook, task, handler, group or operation."""
    return types.MappingProxyType({name: k for name, k in KEYWORDS.items() if where in k.where})


def _object(where: Where, modules: Mapping[str, Any], required: list[str]) -> dict[str, Any]:
    properties: dict[str, Any] = {
        name: {**k.schema, "description": k.meaning} for name, k in keywords_of(where).items()
    }
    properties |= {name: {"$ref": f"#/$defs/modules/{name}"} for name in modules}
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


# Keywords with a default, which null in a patch restores.
_MAY_BE_SET_BACK = [n for n in keywords_of("task") if n not in ("id", "name", "locked")]


def _or_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A keyword's schema in a patch: allows null, also for single entries of texts or codes."""
    of_entry = schema.get("additionalProperties")
    inner = {"additionalProperties": _or_null(of_entry)} if of_entry else {}
    if "enum" in schema:
        return {**schema, "enum": [*schema["enum"], None]}
    kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    return {**schema, **inner, "type": [*kinds, "null"]}


def playbook_schema(modules: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a playbook.

    Args:
        modules: module name to the JSON Schema of its arguments.
    """
    task = _object("task", modules, ["name"])
    task["properties"]["on_exit"] |= {"items": {"$ref": "#/$defs/handler"}}
    group = _object("group", {}, ["parallel", "tasks"])
    group["properties"]["tasks"] |= {"items": {"$ref": "#/$defs/task"}}
    root = _object("playbook", {}, ["phase"])
    step = {
        "if": {"type": "object", "required": ["parallel"]},
        "then": {"$ref": "#/$defs/group"},
        "else": {"$ref": "#/$defs/task"},
    }
    root["properties"]["tasks"] |= {"items": step}
    root["properties"]["patches"] |= {"items": {"$ref": "#/$defs/operation"}}
    operation = _object("task", modules, [])
    operation["properties"]["on_exit"] |= {"items": {"$ref": "#/$defs/handler"}}
    operation["properties"] |= {
        name: _or_null(operation["properties"][name]) for name in _MAY_BE_SET_BACK
    }
    operation["properties"] |= _object("operation", {}, [])["properties"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "pairun playbook",
        **root,
        "$defs": {
            "task": task,
            "handler": _object("handler", modules, ["name", "event"]),
            "group": group,
            "operation": operation,
            "modules": dict(modules),
        },
    }

"""The schema of ``extras.pairun.pod``: a few named settings, and a fragment of a Pod template.

``docs/generate.py`` writes podschema.json, the fragment's part, from the official client's models.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from pairun.base.durations import DURATION_PATTERN, parse_seconds
from pairun.base.sizes import QUANTITY, quantity
from pairun.errors import Problem
from pairun.playbook.document.checking import PLAYBOOK, Format, violations
from pairun.playbook.document.reading import Node, load_bytes
from pairun.playbook.keywords import EXPORT
from pairun.playbook.podkeys import moved_keys

NAME_OF = {
    "containers": "name", "env": "name", "imagePullSecrets": "name", "initContainers": "name",
    "volumes": "name", "volumeDevices": "devicePath", "volumeMounts": "mountPath",
}  # fmt: skip
"""The lists of a Pod template that merge by name, and the key with an element's name."""

_TEXT = {"type": ["string", "null"], "minLength": 1}
_BOOL = {"type": ["boolean", "null"]}
_COUNT = {"type": "integer", "minimum": 0}
_QUANTITY = {"type": ["string", "number", "null"], "pattern": QUANTITY, "examples": ["2Gi", "512Mi"]}  # fmt: skip
_QUANTITIES = {"type": ["object", "null"], "additionalProperties": _QUANTITY}


def _mapping(properties: Mapping[str, Any], required: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "type": ["object", "null"],
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


_OF_A_ROLE: dict[str, Any] = {
    "metadata": {"$ref": "#/$defs/PodMetadata"},
    "spec": {"$ref": "#/$defs/V1PodSpec"},
    "shm": _QUANTITY,
    "init_resources": _mapping({"requests": _QUANTITIES, "limits": _QUANTITIES}),
}
_OF_THE_JOB: dict[str, Any] = {
    "queue": _TEXT,
    "queue_system": {"enum": ["kueue", "volcano", "yunikorn", None]},
    "pod_security": {"enum": ["privileged", "baseline", "restricted", None]},
    "pod_group": _mapping(
        {
            "system": {"enum": ["volcano", "scheduler-plugins"]},
            "min_member": {"type": ["integer", "null"], "minimum": 1},
        },
        ("system",),
    ),
    "suspend": _BOOL,
    "ttl_after_finished": {"type": ["string", "null"], "pattern": f"^{DURATION_PATTERN}$"},
    "hived_skus": {
        "type": ["object", "null"],
        "additionalProperties": _mapping(
            {"gpu": _COUNT, "cpu": _COUNT, "memory": {**_QUANTITY, "type": "string"}},
            ("gpu", "cpu", "memory"),
        ),
    },
}
DEFAULTS_SCHEMA = _mapping({**_OF_A_ROLE, **_OF_THE_JOB})
"""The schema of a policy's ``pod.defaults``; it refers to `pod_definitions`."""
POD_SCHEMA = _mapping(
    {
        **DEFAULTS_SCHEMA["properties"],
        "roles": {"type": "object", "additionalProperties": _mapping(_OF_A_ROLE)},
    }
)
"""The schema of ``extras.pairun.pod``."""


@functools.cache
def pod_definitions() -> dict[str, Any]:
    """The definitions that both schemas refer to."""
    path = os.path.join(os.path.dirname(__file__), "podschema.json")
    definitions: dict[str, Any] = json.loads(load_bytes(path))
    return definitions


def pod_mistakes(
    node: Node, schema: Mapping[str, Any] = POD_SCHEMA, form: Format = PLAYBOOK
) -> Iterator[Problem]:
    """Yield what is wrong with the form of Pod settings; a key of pairun 0.3 with its new form.

    Args:
        schema: `POD_SCHEMA` or `DEFAULTS_SCHEMA`.
    """
    node, problems = moved_keys(node, form)
    yield from problems
    whole = {**schema, "$defs": pod_definitions()}
    form = form._replace(what="keyword", words={"env": EXPORT, "environment": EXPORT})
    yield from violations(node, whole, form, whole="pod")


def split_path(path: str) -> tuple[list[str], Mapping[str, Any] | list[str]]:
    """Split the dotted path of a setting; names of labels and resources keep their dots.

    Returns:
        The steps, and the schema of the value. If the schema does not have the last step: the
        names that it has there.
    """
    schema: Mapping[str, Any] = DEFAULTS_SCHEMA
    steps: list[str] = []
    while path:
        if "$ref" in schema:
            schema = pod_definitions()[schema["$ref"].removeprefix("#/$defs/")]
        first, _, rest = path.partition(".")
        if known := schema.get("properties"):
            if first not in known:
                return [*steps, first], list(known)
            schema = known[first]
        elif "items" in schema:
            schema = schema["items"]
        elif isinstance(schema.get("additionalProperties"), dict):
            first, rest, schema = path, "", schema["additionalProperties"]
        elif schema:
            return [*steps, first], []
        steps.append(first)
        path = rest
    return steps, schema


def measured(path: str, value: Any) -> float | None:
    """The number to compare for the value at a path, in seconds for a time; None if it has none."""
    if path.endswith(("Seconds", "ttl_after_finished")) and isinstance(value, str):
        return parse_seconds(value)
    return quantity(value)

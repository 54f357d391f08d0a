"""The schema of a Pod template, from the models of the official Kubernetes client."""

from __future__ import annotations

import inspect
import json
import re
from typing import Any

from kubernetes.client import models  # type: ignore[import-untyped]

from pairun.base.sizes import QUANTITY

_SCALARS: dict[str, Any] = {
    "str": {"type": "string"},
    "datetime": {"type": "string"},
    "int": {"type": "integer"},
    "bool": {"type": "boolean"},
    "object": {},
    "dict(str, str)": {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
}
_QUANTITY = {"type": ["string", "number", "null"], "pattern": QUANTITY, "examples": ["500m", "2", "2Gi"]}  # fmt: skip
_QUANTITIES = {"type": ["object", "null"], "additionalProperties": _QUANTITY}
_USER = {"type": ["integer", "null"], "minimum": 0, "maximum": 2**31 - 1}
_TEXTS = {"type": ["object", "null"], "additionalProperties": {"type": ["string", "null"]}}


def _one_of(*values: str) -> dict[str, Any]:
    return {"enum": [*values, None]}


_FIELDS: dict[str, dict[str, Any]] = {
    "V1Container.imagePullPolicy": _one_of("Always", "IfNotPresent", "Never"),
    "V1Toleration.operator": _one_of("Equal", "Exists"),
    "V1Toleration.effect": _one_of("NoSchedule", "PreferNoSchedule", "NoExecute"),
    "V1TopologySpreadConstraint.whenUnsatisfiable": {"enum": ["DoNotSchedule", "ScheduleAnyway"]},
    "V1TopologySpreadConstraint.nodeAffinityPolicy": _one_of("Honor", "Ignore"),
    "V1TopologySpreadConstraint.nodeTaintsPolicy": _one_of("Honor", "Ignore"),
    "V1SeccompProfile.type": {"enum": ["RuntimeDefault", "Unconfined", "Localhost"]},
    "V1AppArmorProfile.type": {"enum": ["RuntimeDefault", "Unconfined", "Localhost"]},
    "V1EmptyDirVolumeSource.sizeLimit": _QUANTITY,
    "V1ResourceFieldSelector.divisor": _QUANTITY,
    "V1PodSpec.overhead": _QUANTITIES,
    **{
        f"{model}.{field}": _QUANTITIES
        for model in ("V1ResourceRequirements", "V1VolumeResourceRequirements")
        for field in ("limits", "requests")
    },
    **{
        f"{model}.{field}": _USER
        for model in ("V1SecurityContext", "V1PodSecurityContext")
        for field in ("runAsUser", "runAsGroup", "fsGroup")
    },
    "V1Volume.name": {
        "type": "string",
        "pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
        "examples": ["data"],
    },
}
"""What the API server accepts in some fields, which the models only describe in words."""


def pod_schema() -> str:
    """The definitions of a Pod template's metadata and spec as JSON, one in a line."""
    made: dict[str, Any] = {}
    _define("V1PodSpec", made)
    # Every layer is partial, and Kubernetes adds these containers to Pods that exist.
    del made["V1PodSpec"]["required"], made["V1PodSpec"]["properties"]["ephemeralContainers"]
    metadata = {"labels": _TEXTS, "annotations": _TEXTS}
    made["PodMetadata"] = {
        "type": ["object", "null"],
        "properties": metadata,
        "additionalProperties": False,
    }
    _drop_unused(made)
    lines = (f"{json.dumps(name)}: {json.dumps(made[name])}" for name in sorted(made))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _define(name: str, made: dict[str, Any]) -> None:
    if name in made:
        return
    model = getattr(models, name, None) or getattr(models, f"Core{name}")
    source = inspect.getsource(model)
    needed = re.findall(r"Invalid value for `(\w+)`, must not be `None`", source)
    names = model.attribute_map
    made[name] = {"type": ["object", "null"], "additionalProperties": False, "properties": {}}
    if needed:
        made[name]["required"] = [names[field] for field in dict.fromkeys(needed)]
    for field, kind in model.openapi_types.items():
        known = _FIELDS.get(f"{name}.{names[field]}")
        made[name]["properties"][names[field]] = known or _value(kind, field not in needed, made)


def _value(kind: str, may_be_null: bool, made: dict[str, Any]) -> dict[str, Any]:
    if listed := re.fullmatch(r"list\[(.*)\]", kind):
        items = {"type": "object", **_value(listed[1], False, made)}
        return {"type": ["array", "null"] if may_be_null else "array", "items": items}
    if kind in _SCALARS:
        schema = dict(_SCALARS[kind])
        if schema and may_be_null:
            schema["type"] = [schema["type"], "null"]
        return schema
    _define(kind, made)
    return {"$ref": f"#/$defs/{kind}"}


def _drop_unused(made: dict[str, Any]) -> None:
    """Drop the definitions that no other one refers to."""
    text = json.dumps(made)
    unused = [
        n for n in made if n not in ("V1PodSpec", "PodMetadata") and f'$defs/{n}"' not in text
    ]
    for name in unused:
        del made[name]
    if unused:
        _drop_unused(made)

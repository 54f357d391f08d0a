"""A plan as JSON, with secrets by reference.

Three objects in the JSON have a special meaning:

- ``{"$late": {"template": …, "because": …, "where": …}}``: an expression that can be resolved only
  at run time;
- ``{"$secret": "s1"}``: a value in the secrets file;
- ``{"$literal": {…}}``: the user's mapping, escaped because it has one of these keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from pairun.module import Secret
from pairun.plan import Group, Late, Plan, Task

SCHEMA = 1
"""The version of both files."""


class SecretStore:
    """Names secret texts, so that a plan holds only references.

    Args:
        redact: further texts to mask in all output (the leaves that expressions used).
    """

    def __init__(self, redact: Iterable[str] = ()) -> None:
        self._names: dict[str, str] = {}
        self._redact = set(redact)

    def name(self, secret: Secret) -> str:
        """The reference of a secret."""
        return self._names.setdefault(secret.reveal(), f"s{len(self._names) + 1}")

    def redact(self, text: str) -> None:
        """Mask a text in all output, without a reference to it."""
        self._redact.add(text)

    def dump(self) -> dict[str, Any]:
        """The content of the secrets file."""
        return {
            "schema": SCHEMA,
            "values": {name: text for text, name in self._names.items()},
            "redact": sorted(self._redact),
        }


def dump_plan(plan: Plan, secrets: SecretStore) -> dict[str, Any]:
    """A plan as plain data, with secrets by reference."""

    def encode(value: Any) -> Any:
        if isinstance(value, Secret):
            return {"$secret": secrets.name(value)}
        if isinstance(value, Late):
            return {"$late": {**_plain_fields(value), "vars": encode(value.vars)}}
        if isinstance(value, Mapping):
            encoded = {k: encode(v) for k, v in value.items()}
            return {"$literal": encoded} if any(str(k).startswith("$") for k in value) else encoded
        if isinstance(value, list | tuple):
            return [encode(v) for v in value]
        return value

    def task(t: Task) -> dict[str, Any]:
        out = {
            name: getattr(t, name)
            for name, field in attrs.fields_dict(Task).items()
            if getattr(t, name) != _default(field)
        }
        for name in ("args", "when", "environment"):
            if name in out:
                out[name] = encode(out[name])
        if t.on_exit:
            out["on_exit"] = [task(h) for h in t.on_exit]
        return out

    return {
        "schema": SCHEMA,
        "pairun": plan.pairun,
        "phase": plan.phase,
        "grace_s": plan.grace_s,
        "modules": {name: _plain_fields(m) for name, m in plan.modules.items()},
        "steps": [
            {"parallel": s.name, "where": s.where, "tasks": [task(t) for t in s.tasks]}
            if isinstance(s, Group)
            else task(s)
            for s in plan.steps
        ],
    }


def _plain_fields(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in attrs.fields_dict(type(record))}


def _default(field: Any) -> Any:
    is_factory = isinstance(field.default, attrs.Factory)  # type: ignore[arg-type]
    return field.default.factory() if is_factory else field.default

"""The plan as JSON: init writes it, the process of the tasks reads it.

Three objects in the JSON have a special meaning:

- ``{"$late": {"template": …, "because": …, "where": …}}``: an expression that can be resolved only
  at run time;
- ``{"$secret": "s1"}``: a value in the secrets file;
- ``{"$literal": {…}}``: the user's mapping, escaped because it has a key that begins with ``$``.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from pairun.base.fields import decode
from pairun.base.paths import runtime_file
from pairun.module import Secret
from pairun.plan import Late, Plan
from pairun.secrets.vault import Vault
from pairun.volume.door import Door
from pairun.volume.reader import (
    PLAN_FILE,
    PLAN_SCHEMA,
    Command,
    Secrets,
    hide_job_key,
    load,
    read_document,
    read_secrets,
)


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
            "schema": PLAN_SCHEMA,
            "values": {name: text for text, name in self._names.items()},
            "redact": sorted(self._redact),
        }


def dump_plan(plan: Plan, secrets: SecretStore, command: Command | None = None) -> dict[str, Any]:
    """A plan as plain data, with secrets by reference.

    Args:
        command: what PID 1 runs itself, if the plan is of its phase.
    """
    document = {"schema": PLAN_SCHEMA, **_encoded(plan, secrets)}
    return document if command is None else {**document, "command": _encoded(command, secrets)}


def _encoded(value: Any, secrets: SecretStore) -> Any:
    """Plain data; records without the fields that have their default value."""
    if isinstance(value, Secret):
        return {"$secret": secrets.name(value)}
    if isinstance(value, Mapping):
        encoded = {k: _encoded(v, secrets) for k, v in value.items()}
        return {"$literal": encoded} if any(str(k).startswith("$") for k in value) else encoded
    if attrs.has(type(value)):
        defaults = {name: _default(each) for name, each in attrs.fields_dict(type(value)).items()}
        given = {name: v for name in defaults if (v := getattr(value, name)) != defaults[name]}
        encoded = {name: _encoded(v, secrets) for name, v in given.items()}
        return {"$late": encoded} if isinstance(value, Late) else encoded
    if hasattr(value, "_asdict"):
        given = {k: v for k, v in value._asdict().items() if v != value._field_defaults.get(k, ...)}
        return {name: _encoded(v, secrets) for name, v in given.items()}
    return [_encoded(v, secrets) for v in value] if isinstance(value, list | tuple) else value


def _default(field: Any) -> Any:
    is_factory = isinstance(field.default, attrs.Factory)  # type: ignore[arg-type]
    return field.default.factory() if is_factory else field.default


def read_plan(root: str, vault: Vault) -> Plan:
    """The runtime plan that init wrote.

    Raises:
        PairunError: it is missing or invalid.
    """
    door = Door(root)
    hide_job_key(door, vault)
    document = read_document(door, PLAN_FILE)
    return load_plan(document, read_secrets(door, vault), runtime_file(root, PLAN_FILE))


def load_plan(document: Mapping[str, Any], secrets: Secrets, file: str) -> Plan:
    """Decode a plan's parsed JSON without its schema, and check the type of every field.

    Raises:
        PairunError: it is not a plan; the message names the field.
    """
    fields = {name: value for name, value in document.items() if name != "command"}
    return load(Plan, fields, "", file, secrets, functools.partial(decode, Late))

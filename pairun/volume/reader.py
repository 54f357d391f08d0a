"""Reads the files that init wrote to the volume; needs only the standard library.

PID 1 reads what it runs itself. The executor reads the same plan in full (`pairun.volume.planfile`).
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from pairun.base.fields import BadField, Seconds, decode
from pairun.base.foreignjson import parse_json
from pairun.base.forwarding import EVERYTHING, Forwarding
from pairun.base.onstop import OnStop
from pairun.base.paths import KEY_FILE, runtime_file
from pairun.errors import PairunError
from pairun.secrets.secret import Secret
from pairun.secrets.vault import Vault
from pairun.volume.door import Door

_T = TypeVar("_T")
MakeLate = Callable[[object, str], object]
"""Makes a late value of its fields and its place."""

PLAN_SCHEMA = 2
"""The schema of plans and secrets files that this version writes and reads."""

MAX_KEY_BYTES = 4096
"""The largest key of a job, in bytes."""

PLAN_FILE = "plan.json"
SECRETS_FILE = "secrets.json"
ENVIRONMENT_FILE = "runtime_env.sh"
SCRIPT_FILE = "user.sh"
"""Files in ``runtime.d``: the plan, its secrets' values, the variables, the user's command."""


class Command(NamedTuple):
    """What PID 1 runs: the user's command, ready to start, and what surrounds it.

    Attributes:
        grace_s: the plan's grace time.
        has_tasks: whether tasks run before the command.
        handlers: ids of the exit handlers that the command's step registers.
        environment: variables of the command alone.
        argv: the command if it is a program; empty if it is the script.
        shells: the shells that may run the script, in order of preference.
        forwarding: which signals PID 1 forwards to the command, and as which.
        on_stop: the exit code if a stopped command exits 0; None for the container's setting.
    """

    grace_s: Seconds
    has_tasks: bool = False
    handlers: tuple[str, ...] = ()
    environment: Mapping[str, str | Secret] = {}
    argv: tuple[str, ...] = ()
    shells: tuple[str, ...] = ("bash", "sh")
    forwarding: Forwarding = EVERYTHING
    on_stop: OnStop | None = None


class Secrets(NamedTuple):
    """The secrets file.

    Attributes:
        values: the texts to which the plan refers.
        redact: the texts to mask in all output.
    """

    values: Mapping[str, str] = {}
    redact: tuple[str, ...] = ()


def read_command(door: Door, vault: Vault) -> Command:
    """Read what PID 1 runs.

    Raises:
        PairunError: a file is missing, incomplete or of another version.
    """
    hide_job_key(door, vault)
    document = read_document(door, PLAN_FILE)
    secrets = read_secrets(door, vault, optional=True)
    file = runtime_file(door.root, PLAN_FILE)
    command = load(Command, document.get("command"), "command", file, secrets)
    script = runtime_file(door.root, SCRIPT_FILE)
    if not command.argv and not door.is_file(script):
        raise _missing(script)
    return command


def read_environment(door: Door) -> dict[str, str]:
    """The variables of ``runtime_env.sh``: lines of ``export NAME='value'``, as a POSIX shell reads them.

    Returns:
        Names and values; empty if the file does not exist.

    Raises:
        PairunError: it cannot be read.
    """
    text = os.fsdecode(read_file(door, ENVIRONMENT_FILE) or b"")
    # In single quotes no character is special; a quote itself is written '\'' (close, quote, open).
    exports = re.findall(r"^export ([^\s=]+)='((?:[^']|'\\'')*)'$", text, re.MULTILINE)
    return {name: value.replace("'\\''", "'") for name, value in exports}


def read_secrets(door: Door, vault: Vault, *, optional: bool = False) -> Secrets:
    """The content of the secrets file.

    Args:
        optional: treat a missing file as one without secrets.

    Raises:
        PairunError: it is missing, cannot be read, or is of another version.
    """
    file = runtime_file(door.root, SECRETS_FILE)
    secrets = load(Secrets, read_document(door, SECRETS_FILE, optional=optional), "", file)
    # The values are whole texts that contain secrets: mask only the secrets in them.
    vault.add(secrets.redact)
    return secrets


def hide_job_key(door: Door, vault: Vault) -> None:
    """Mask the key by which the job's instances authenticate, if the platform mounts one.

    A key that cannot be read cannot be used, and is not masked.
    """
    with contextlib.suppress(OSError):
        key = door.read(os.path.join(door.root, KEY_FILE), MAX_KEY_BYTES)
        vault.add([key.decode("ascii", "replace").strip()])


def read_document(door: Door, name: str, *, optional: bool = False) -> dict[str, Any]:
    """The fields of a JSON file in ``runtime.d``, without its schema.

    Args:
        optional: treat a missing file as one without fields.

    Raises:
        PairunError: it is missing, cannot be read, is no JSON, or is of another version.
    """
    path, text = runtime_file(door.root, name), read_file(door, name)
    if text is None:
        if optional:
            return {}
        raise _missing(path)
    try:
        return body(parse_json(text), path)
    except ValueError as e:
        raise _unusable(path, f"it is not complete JSON ({e})") from e


def body(document: object, file: str) -> dict[str, Any]:
    """The fields of a document besides its schema.

    Raises:
        PairunError: it is of another version.
    """
    fields = dict(document) if isinstance(document, dict) else {}
    if (schema := fields.pop("schema", None)) != PLAN_SCHEMA:
        raise _unusable(file, f"it has schema {schema}, this pairun reads {PLAN_SCHEMA}")
    return fields


def read_file(door: Door, name: str) -> bytes | None:
    """Read a file that init wrote for the runtime phase; None if it does not exist.

    Raises:
        PairunError: it cannot be read.
    """
    path = runtime_file(door.root, name)
    try:
        return door.read(path)
    except FileNotFoundError:
        return None
    except OSError as e:
        raise _unusable(path, e.strerror or str(e)) from e


def load(
    kind: type[_T],
    value: object,
    where: str,
    file: str,
    secrets: Secrets = Secrets(),  # noqa: B008 - a constant
    late: MakeLate | None = None,
) -> _T:
    """Decode a part of a file that init wrote, and check the type of every field.

    Args:
        kind: what it is.
        value: plain data, with the objects that `pairun.volume.planfile` lists.
        where: its place in the file.
        file: the file's name in messages.
        secrets: those to which it refers.
        late: for a part that may have late values.

    Raises:
        PairunError: a field is invalid; the message names it.
    """
    try:
        return decode(kind, _resolved(value, where, secrets.values, late), where)
    except BadField as e:
        raise _unusable(file, str(e)) from e
    except RecursionError as e:
        raise _unusable(file, "it is nested too deep") from e


def _resolved(value: Any, where: str, secrets: Mapping[str, str], late: MakeLate | None) -> Any:
    if isinstance(value, list):
        return [_resolved(v, f"{where}[{n}]", secrets, late) for n, v in enumerate(value)]
    if not isinstance(value, dict):
        return value
    special = next((key for key in value if key.startswith("$")), None)
    if special is not None:
        if len(value) > 1 or special not in ("$literal", "$secret", "$late"):
            raise BadField(where, f"not have the field {special!r}")
        value = value[special]
        where = where if special == "$literal" else f"{where}.{special}"
        if special == "$secret":
            if not isinstance(value, str) or value not in secrets:
                raise BadField(where, f"be in the secrets file, which has no {value!r}")
            return Secret(secrets[value])
        if not isinstance(value, dict):
            raise BadField(where, "be a mapping")
    prefix = f"{where}." if where else ""
    fields = {k: _resolved(v, prefix + k, secrets, late) for k, v in value.items()}
    if special != "$late":
        return fields
    if late is None:
        raise BadField(where, "not depend on a task's result")
    return late(fields, where)


def _missing(path: str) -> PairunError:
    message = f"{path} is missing: the init phase did not run, or failed"
    hint = "run `pairun init` in the Pod's init container; on a laptop use `pairun run`"
    return PairunError.of("PR704", message, hint=hint)


def _unusable(path: str, why: str) -> PairunError:
    return PairunError.of("PR702", f"{path} cannot be used: {why}", hint="run the init phase again")

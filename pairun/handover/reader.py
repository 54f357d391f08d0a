"""The one reader of the files that init wrote to the volume; it needs only the standard library.

PID 1 reads the user's command, the grace time, and whether tasks run before and after it. The
executor decodes the same texts in full (`pairun.handover.planreading`).
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from pairun.base.foreignjson import parse_json
from pairun.base.forwarding import Forwarding, read_forwarding
from pairun.base.onstop import OnStop, read_on_stop
from pairun.base.paths import KEY_FILE, runtime_file
from pairun.errors import PairunError, Problem
from pairun.handover.door import Door
from pairun.secrets.vault import Vault

SCHEMA = 1
"""The schema of plans and secrets files that this version reads."""

USER_COMMAND = "user_command"
"""The module of a runtime plan's last step, which PID 1 itself runs."""

DEFAULT_GRACE_S = 30.0

MAX_KEY_BYTES = 4096
"""The largest key of a job, in bytes."""

PLAN_FILE = "plan.json"
SECRETS_FILE = "secrets.json"
ENVIRONMENT_FILE = "runtime_env.sh"
SCRIPT_FILE = "user.sh"
"""Files in ``runtime.d``: the plan, its secrets' values, the variables, the user's command."""


class Inputs(NamedTuple):
    """What init wrote for this phase.

    Attributes:
        steps_before: whether tasks run before the user's command.
        handlers: ids of the exit handlers that the step of the user's command registers.
        command_environment: variables of the user's command alone.
        grace_s: the plan's grace time.
        environment: the variables that init computed.
        script: the path of the user's command if it is a shell script.
        argv: the user's command if it is a program; else empty.
        shells: the shells that may run the script, in order of preference.
        forwarding: which signals PID 1 forwards to the command, and as which.
        on_stop: the exit code if a stopped command exits 0; None for the container's setting.
        vault: the secrets to mask in pairun's own output.
    """

    steps_before: bool
    handlers: tuple[str, ...]
    command_environment: Mapping[str, str]
    grace_s: float
    environment: Mapping[str, str]
    script: str
    argv: tuple[str, ...]
    shells: tuple[str, ...]
    forwarding: Forwarding
    on_stop: OnStop | None


def read_inputs(root: str, vault: Vault) -> Inputs:
    """Read what init wrote to the volume.

    Args:
        root: the shared volume.
        vault: takes every secret that is read.

    Raises:
        PairunError: a file is missing, incomplete or of another version.
    """
    door = Door(root)
    hide_job_key(door, vault)
    secrets = read_secrets(door, vault, optional=True)
    plan_file = runtime_file(root, PLAN_FILE)
    plan = read_document(door)
    script = runtime_file(root, SCRIPT_FILE)
    try:
        *before, command = plan["steps"]
        if command.get("module") != USER_COMMAND:
            raise _unusable(plan_file, "its last step is not the user's command")
        args = command.get("args", {})
        argv = _argv(args.get("argv"), plan_file)
        if not argv and not door.is_file(script):
            raise _missing(script)
        values = secrets.get("values", {})
        return Inputs(
            steps_before=bool(before),
            handlers=tuple(_plain(h["id"], plan_file) for h in command.get("on_exit", ())),
            command_environment={
                _name(name, plan_file): _plain(_text(value, values, plan_file), plan_file)
                for name, value in command.get("environment", {}).items()
            },
            grace_s=_seconds(plan.get("grace_s", DEFAULT_GRACE_S), plan_file),
            environment=read_environment(door),
            script=script,
            argv=argv,
            shells=_shells(args.get("shell") or "auto", plan_file),
            forwarding=read_forwarding(args.get("signals"), args.get("signals_to")),
            on_stop=_on_stop(args.get("on_stop"), plan_file),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise _unusable(plan_file, f"{type(e).__name__} {e}") from e


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


def read_secrets(door: Door, vault: Vault, *, optional: bool = False) -> dict[str, Any]:
    """The content of the secrets file.

    Args:
        door: to the shared volume.
        vault: takes every secret that is read.
        optional: treat a missing file as one without secrets.

    Raises:
        PairunError: it is missing, cannot be read, or is of another version.
    """
    path, text = runtime_file(door.root, SECRETS_FILE), read_file(door, SECRETS_FILE)
    if text is None and not optional:
        raise _missing(path)
    content = {} if text is None else _parsed(path, text)
    redact, values = content.get("redact", []), content.get("values", {})
    if not isinstance(redact, list) or not isinstance(values, dict):
        raise _unusable(path, "'redact' must be a list and 'values' a mapping")
    if not all(isinstance(text, str) for text in (*redact, *values.values())):
        raise _unusable(path, "a secret must be text")
    # The values are whole texts that contain secrets: mask only the secrets in them.
    vault.add(redact)
    return content


def hide_job_key(door: Door, vault: Vault) -> None:
    """Mask the key by which the job's instances authenticate, if the platform mounts one.

    A key that cannot be read cannot be used, and is not masked.
    """
    with contextlib.suppress(OSError):
        key = door.read(os.path.join(door.root, KEY_FILE), MAX_KEY_BYTES)
        vault.add([key.decode("ascii", "replace").strip()])


def read_document(door: Door) -> dict[str, Any]:
    """The runtime plan as plain data.

    Raises:
        PairunError: it is missing, cannot be read, or is of another version.
    """
    path, text = runtime_file(door.root, PLAN_FILE), read_file(door, PLAN_FILE)
    if text is None:
        raise _missing(path)
    return _parsed(path, text)


def read_file(door: Door, name: str) -> bytes | None:
    """Read a file that init wrote for the runtime phase; None if it does not exist.

    Args:
        door: to the shared volume.
        name: the file's name in ``runtime.d``.

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


def _parsed(path: str, text: bytes) -> dict[str, Any]:
    try:
        content = parse_json(text)
    except ValueError as e:
        raise _unusable(path, f"it is not complete JSON ({e})") from e
    schema = content.get("schema") if isinstance(content, dict) else None
    if schema != SCHEMA:
        raise _unusable(path, f"it has schema {schema}, this pairun reads {SCHEMA}")
    return dict(content)


def _text(value: object, secrets: Mapping[str, str], plan_file: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and "$secret" in value:
        return secrets[value["$secret"]]
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    raise _unusable(plan_file, "the environment of the user's command depends on a task's result")


def _plain(value: object, plan_file: str) -> str:
    """A text that is valid in an environment (execve(2))."""
    if not isinstance(value, str) or "\0" in value:
        raise _unusable(plan_file, "a handler's id or a variable is not text without NUL")
    return value


def _name(value: str, plan_file: str) -> str:
    if not value or "=" in value:
        raise _unusable(plan_file, f"{value!r} is not the name of a variable")
    return _plain(value, plan_file)


def _seconds(value: object, plan_file: str) -> float:
    number = value if isinstance(value, int | float) else -1
    if not 0 <= number <= sys.float_info.max:
        raise _unusable(plan_file, "grace_s must be a number of seconds")
    return float(number)


def _shells(asked: object, plan_file: str) -> tuple[str, ...]:
    if asked in ("bash", "sh"):
        return (str(asked),)
    if asked != "auto":
        raise _unusable(plan_file, "the shell of the user's command depends on a task's result")
    return ("bash", "sh")


def _on_stop(value: object, plan_file: str) -> OnStop | None:
    try:
        return read_on_stop(value)
    except ValueError as e:
        raise _unusable(plan_file, f"the command's on_stop: {e}") from e


def _argv(asked: object, plan_file: str) -> tuple[str, ...]:
    if asked is None:
        return ()
    if (
        not isinstance(asked, list)
        or not asked
        or not all(isinstance(a, str) and "\0" not in a for a in asked)
    ):
        raise _unusable(plan_file, "the user's command depends on a task's result")
    return tuple(asked)


def _missing(path: str) -> PairunError:
    return PairunError(
        Problem(
            "PR704",
            f"{path} is missing: the init phase did not run, or failed",
            hint="run `pairun init` in the Pod's init container; on a laptop use `pairun run`",
        )
    )


def _unusable(path: str, why: str) -> PairunError:
    return PairunError(
        Problem("PR702", f"{path} cannot be used: {why}", hint="run the init phase again")
    )

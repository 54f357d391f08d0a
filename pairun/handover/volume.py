"""The shared volume: what init finds there is not trusted, and what it leaves is the handover."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, cast

import attrs

from pairun.base.paths import DEFAULT_PAI_DIR, PROGRAMS
from pairun.contract.arguments import build
from pairun.contract.loading import ModuleFile, plan_loader
from pairun.errors import PairunError, Problem, Problems
from pairun.handover.bundle import find_bundle, find_own_authorities
from pairun.handover.envfile import read_variables
from pairun.handover.podlogs import prepare_logs
from pairun.handover.tools import copy_tools, find_tools
from pairun.host import files as hostfiles
from pairun.host.context import HostContext
from pairun.module import Failure, Secret
from pairun.plan import USER_COMMAND, Plan, SecretStore, Task, dump_plan
from pairun.playbook.document.reading import decode, load_bytes

KEPT = frozenset(
    {
        "logs", "secrets", "user-extension-secrets", "token-secrets", "ssh-secret", "rendezvous",
        "config", "init.d",
    }
)  # fmt: skip
"""What init neither deletes nor shadows: logs, what the platform mounts, the image's programs."""

MARKER = ".pairun"
"""The file that says of a folder that pairun made it, so that init may clean it."""

_MARK = b"pairun init cleans this folder each time it runs: keep nothing here.\n"

MAX_ENVIRONMENT = 256 * 1024 * 1024


class Volume:
    """The shared volume, seen by init.

    Args:
        pai_dir: its path.
        env: the environment of the init container.
    """

    def __init__(self, pai_dir: str, env: Mapping[str, str]) -> None:
        self.pai_dir = pai_dir
        self._env = dict(env)
        self._host = HostContext(env=env, pai_dir=pai_dir, deadline=None)

    def prepare(self) -> None:
        """Remove what an earlier run left, and make the folders; safe in a volume used before.

        Raises:
            PairunError: the volume cannot be used, or is a folder that is not ours to clean.
        """
        try:
            os.makedirs(self.pai_dir, exist_ok=True)
            left = [n for n in sorted(os.listdir(self.pai_dir)) if n not in KEPT]
            self._require_ours(left)
            # First, so that one who is killed while it cleans may clean again.
            if not self._has_marker():
                self._host.remove(self._path(MARKER))
                self._host.write_file(self._path(MARKER), _MARK)
            for name in left:
                if name != MARKER:
                    self._host.remove(self._path(name))
            self._host.make_dir(self._path("runtime.d"))
            self._host.make_dir(self._path("run"))
            os.chmod(self._path("run"), 0o1777)
            prepare_logs(self.pai_dir, self._env)
        except (OSError, Failure) as e:
            raise PairunError(
                Problem("PR701", f"the work directory {self.pai_dir} cannot be used: {e}")
            ) from e

    def _require_ours(self, left: Sequence[str]) -> None:
        """Refuse to clean a folder that nothing shows to be a volume: it may be anybody's.

        Args:
            left: what would be removed.

        Raises:
            PairunError: it is not ours to clean.
        """
        path = os.path.abspath(self.pai_dir)
        if os.path.islink(path):
            raise _not_ours(f"{path} is a symbolic link", "name the folder that it leads to")
        home = os.path.realpath(os.path.expanduser("~"))
        real = os.path.realpath(path)
        if path != DEFAULT_PAI_DIR and f"{home}/".startswith(f"{real.rstrip('/')}/"):
            raise _not_ours(f"{path} is a home directory, or holds one", _OTHER)
        if (
            not left
            or path == DEFAULT_PAI_DIR
            or real in hostfiles.mount_points()
            or self._has_marker()
        ):
            return
        names = ", ".join(map(repr, left[:3])) + (" and more" if len(left) > 3 else "")
        raise _not_ours(f"{path} is not empty ({names}), and pairun did not make it", _OTHER)

    def _has_marker(self) -> bool:
        """Whether our own file stands there; a link or a folder of that name says nothing."""
        try:
            return stat.S_ISREG(os.lstat(self._path(MARKER)).st_mode)
        except FileNotFoundError:
            return False

    def _path(self, *parts: str) -> str:
        return os.path.join(self.pai_dir, *parts)

    def add(self, name: str, data: bytes) -> None:
        """Write a file that is readable for all into ``runtime.d``.

        Raises:
            Failure: it cannot be written.
        """
        self._host.write_file(self._path("runtime.d", name), data)

    def add_program(self) -> None:
        """Leave the bundle, PID 1 of whatever image the user chose, and the authorities it trusts.

        Raises:
            PairunError: the bundle that is asked for is not there.
            Failure: a file cannot be written.
        """
        if (bundle := find_bundle(self._env)) is not None:
            hostfiles.copy(bundle, self._path("runtime"), 0o755, durable=False)
        self._add_name(bundled=bundle is not None)
        if (authorities := find_own_authorities(self._env)) is not None:
            self.add("ca-certificates.crt", load_bytes(authorities))

    def _add_name(self, *, bundled: bool) -> None:
        """Make ``pairun`` a program of the user's container; PID 1 puts the folder into PATH."""
        program = self._path(PROGRAMS, "pairun")
        self._host.make_dir(os.path.dirname(program))
        if bundled:
            os.symlink("../runtime", program)
        else:
            here = f'#!/bin/sh\nexec "{sys.executable}" -P -m pairun "$@"\n'
            self._host.write_file(program, here.encode(), 0o755)

    def variables(self) -> Mapping[str, str]:
        """What the init tasks have written to ``env`` in ``PAI_RUNTIME_DIR``.

        Raises:
            PairunError: the file is not valid.
        """
        folder = self._env.get("PAI_RUNTIME_DIR") or self._path("runtime.d")
        if folder.startswith(DEFAULT_PAI_DIR + "/"):
            folder = self.pai_dir + folder.removeprefix(DEFAULT_PAI_DIR)
        path = os.path.join(folder, "env")
        if not os.path.exists(path):
            return {}
        problems = Problems()
        found = read_variables(decode(load_bytes(path), path, "cluster"), problems)
        problems.raise_errors()
        return found

    def hand_over(
        self,
        plan: Plan,
        redact: Iterable[str],
        variables: Mapping[str, str | Secret] | None = None,
        redact_used: Iterable[str] = (),
    ) -> None:
        """Write what the runtime phase needs: plan, secrets, the user's command, modules.

        Args:
            plan: the plan of the runtime phase.
            redact: texts that no sink may show.
            variables: further ones of the user's container; of secrets the command alone.
            redact_used: likewise, where a secret of the plan holds them.

        Raises:
            Failure: a file cannot be written.
        """
        secrets = SecretStore(tuple(redact))
        variables = variables or {}
        self._add_variables({n: v for n, v in variables.items() if isinstance(v, str)})
        plan = _with_secrets(plan, {n: v for n, v in variables.items() if isinstance(v, Secret)})
        self._add_tools(plan)
        moved = attrs.evolve(plan, modules=self._copied_modules(plan.modules))
        document = dump_plan(moved, secrets)
        values = secrets.dump()["values"].values()
        for text in redact_used:
            if any(text in value for value in values):
                secrets.redact(text)
        self._write_secret("secrets.json", json.dumps(secrets.dump()))
        command = _command_of(plan)
        if command is not None:
            self._write_secret("user.sh", _script(plan, command))
        # The plan last: while it is missing, nothing starts.
        self._host.write_file(self._path("runtime.d", "plan.json"), json.dumps(document).encode())

    def _add_tools(self, plan: Plan) -> None:
        """Leave the programs that the plan's modules need in whatever image the user chose."""
        load = plan_loader(plan.modules)
        needed = {tool for name in plan.modules for tool in load(name).tools}
        copy_tools(needed, find_tools(self._env), self._path("tools"))

    def _add_variables(self, variables: Mapping[str, str]) -> None:
        """Append to the environment file; of a name that is there already, the last line counts."""
        if not variables:
            return
        path = self._path("runtime.d", "runtime_env.sh")
        before = self._host.read_file(path, MAX_ENVIRONMENT) or b""
        # Quoted as the file's other lines are: PID 1 reads no other form.
        quoted = ((n, v.replace("'", "'\\''")) for n, v in variables.items())
        lines = (f"export {n}='{v}'\n" for n, v in quoted)
        self._host.write_file(path, before + "".join(lines).encode("utf-8", "surrogateescape"))

    def _write_secret(self, name: str, text: str) -> None:
        path = self._path("runtime.d", name)
        uid = self._env.get("PAIRUN_APP_UID", "")
        # Without knowing who the user's container runs as, the boundary is the Pod.
        self._host.write_file(path, text.encode(), 0o600 if uid.isdigit() else 0o644)
        if uid.isdigit() and os.geteuid() == 0:
            os.chown(path, int(uid), -1)

    def _copied_modules(self, modules: Mapping[str, ModuleFile]) -> dict[str, ModuleFile]:
        """Copy the source of every module that is not built in."""
        out = {}
        for name, module in modules.items():
            if module.built_in:
                out[name] = module
                continue
            target = self._path("runtime.d", "modules", f"{name}.py")
            self._host.make_dir(os.path.dirname(target))
            with open(module.path, "rb") as f:
                self._host.write_file(target, f.read())
            out[name] = attrs.evolve(module, path=target)
        return out


_OTHER = (
    "init would remove what is in it: let PAIRUN_PAI_DIR name a new or empty folder, "
    "or mount the volume there"
)


def _not_ours(why: str, hint: str) -> PairunError:
    return PairunError(Problem("PR701", f"the work directory cannot be used: {why}", None, hint))


def _with_secrets(plan: Plan, variables: Mapping[str, Secret]) -> Plan:
    """The plan with variables for the user's command that are kept apart from it."""
    command = _command_of(plan)
    if command is None or not variables:
        return plan
    environment = {**command.environment, **variables}
    steps = (*plan.steps[:-1], attrs.evolve(command, environment=environment))
    return attrs.evolve(plan, steps=steps)


class _Command(Protocol):
    """What the module of the user's command offers besides a module's methods."""

    def script_text(self) -> str:
        """The file that the shell runs."""


def _command_of(plan: Plan) -> Task | None:
    last = plan.steps[-1] if plan.steps else None
    return last if isinstance(last, Task) and last.module == USER_COMMAND else None


def _script(plan: Plan, command: Task) -> str:
    module, problems = build(plan_loader(plan.modules)(command.module), command.args)
    assert not problems  # the plan was checked
    return cast("_Command", module).script_text()

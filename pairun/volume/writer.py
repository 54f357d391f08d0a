"""The shared volume: init does not trust what it finds there, and writes the handover to it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, cast

import attrs

from pairun.base.forwarding import read_forwarding
from pairun.base.onstop import OnStop
from pairun.base.paths import DEFAULT_PAI_DIR, MOUNTED, PROGRAMS, runtime_file
from pairun.base.system import mount_points
from pairun.contract.arguments import build
from pairun.contract.loading import ModuleFile, plan_loader, planned_source
from pairun.contract.results import variable_text
from pairun.errors import PairunError
from pairun.module import Secret
from pairun.plan import USER_COMMAND, Late, Plan, Task
from pairun.volume.bundle import (
    BARRIER_FILE,
    PROVIDED,
    barrier_script,
    copy_tools,
    find_bundle,
    find_own_authorities,
    find_tools,
)
from pairun.volume.door import Door
from pairun.volume.planfile import SecretStore, dump_plan
from pairun.volume.podlogs import prepare_logs
from pairun.volume.reader import ENVIRONMENT_FILE, PLAN_FILE, SCRIPT_FILE, SECRETS_FILE, Command

KEPT = MOUNTED | {"logs", "init.d"}
"""What init neither deletes nor shadows: logs, the platform's mounts, the image's programs."""

_PLUGIN_SCRIPT = re.compile(r"plugin_(pre|post)[0-9]+\.sh")

_MARKER = ".pairun"
"""The file that marks a folder as created by pairun, so that init may clean it."""

_MARK = b"pairun init cleans this folder each time it runs: keep nothing here.\n"


class Volume:
    """The shared volume, as init uses it, which alone writes to it.

    All methods raise `PairunError` where a file cannot be read or written.

    Args:
        pai_dir: its path.
    """

    def __init__(self, pai_dir: str, env: Mapping[str, str]) -> None:
        self.pai_dir = pai_dir
        self._env = dict(env)
        self._door = Door(pai_dir)

    def prepare(self) -> None:
        """Remove the files of an earlier run, and create the folders; safe to repeat.

        Raises:
            PairunError: the volume cannot be used, or is a folder that init must not clean.
        """
        if os.path.islink(os.path.abspath(self.pai_dir)):
            why = f"{os.path.abspath(self.pai_dir)} is a symbolic link"
            raise _not_ours(why, "give the folder that it points to")
        with self._in_words():
            self._door.make_root()
            left = [n for n in self._door.names(self.pai_dir) if n not in KEPT]
            self._require_ours(left)
            self._door.protect_root()
            # Write the marker first: if init is killed while it cleans, the next one may clean.
            if not self._has_marker():
                self._door.remove(self._path(_MARKER))
                self._door.write(self._path(_MARKER), _MARK)
            self._door.remove(*(self._path(name) for name in left if name != _MARKER))
            self._door.make_folder(self._path("runtime.d"))
            self._door.make_folder(self._path("run"), 0o1777)
            prepare_logs(self._door, self._env)

    @contextlib.contextmanager
    def _in_words(self) -> Iterator[None]:
        """Turn an error of the operating system into a problem that names the path."""
        try:
            yield
        except OSError as e:
            where = "" if e.filename in (None, self.pai_dir) else f"{e.filename}: "
            message = f"the work directory {self.pai_dir} cannot be used: {where}{e.strerror}"
            raise PairunError.of("PR701", message) from e

    def _require_ours(self, left: Sequence[str]) -> None:
        """Refuse to clean a folder without evidence that it is a volume of pairun.

        Raises:
            PairunError: init must not clean it.
        """
        path = os.path.abspath(self.pai_dir)
        home = os.path.realpath(os.path.expanduser("~"))
        real = os.path.realpath(path)
        if path != DEFAULT_PAI_DIR and f"{home}/".startswith(f"{real.rstrip('/')}/"):
            raise _not_ours(f"{path} is a home directory, or holds one", _OTHER)
        if not left or path == DEFAULT_PAI_DIR or self._has_marker() or real in mount_points():
            return
        names = ", ".join(map(repr, left[:3])) + (" and more" if len(left) > 3 else "")
        raise _not_ours(f"{path} is not empty ({names}), and pairun did not make it", _OTHER)

    def _has_marker(self) -> bool:
        """Whether pairun's own file exists; a link or a folder of that name does not count."""
        return self._door.is_file(self._path(_MARKER))

    def _path(self, *parts: str) -> str:
        return os.path.join(self.pai_dir, *parts)

    def add(self, name: str, data: bytes) -> None:
        """Write a file into ``runtime.d``, readable for all."""
        with self._in_words():
            self._door.write(runtime_file(self.pai_dir, name), data)

    def add_program(self) -> None:
        """Write the bundle, which is PID 1 in the user's image, and the authorities it trusts.

        Raises:
            PairunError: the platform's program has no absolute path.
        """
        provided = self._env.get(PROVIDED, "")
        if provided and not os.path.isabs(provided):
            raise PairunError.of("PR701", f"{PROVIDED}={provided}: it is not an absolute path")
        bundle = None if provided else find_bundle(self._env)
        with self._in_words():
            if provided:
                # Jobs know this name; the program itself is on the platform's mount.
                self._door.link(provided, self._path("runtime"))
            elif bundle is not None:
                self._door.copy_in(bundle, self._path("runtime"), 0o755)
            self._add_name(bundled=bool(provided or bundle))
            if (authorities := find_own_authorities(self._env)) is not None:
                path = runtime_file(self.pai_dir, "ca-certificates.crt")
                self._door.copy_in(authorities, path)

    def _add_name(self, *, bundled: bool) -> None:
        """Make ``pairun`` a program of the user's container; PID 1 puts the folder into PATH."""
        program = self._path(PROGRAMS, "pairun")
        self._door.make_folder(os.path.dirname(program))
        if bundled:
            self._door.link("../runtime", program)
        else:
            here = f'#!/bin/sh\nexec "{sys.executable}" -P -m pairun "$@"\n'
            self._door.write(program, here.encode(), 0o755)
        script = barrier_script(self.pai_dir, program)
        self._door.write(runtime_file(self.pai_dir, BARRIER_FILE), script, 0o755)

    def variables_file(self) -> tuple[str, bytes]:
        """The path and the text of ``env`` in ``PAI_RUNTIME_DIR``, which init tasks write."""
        folder = self._env.get("PAI_RUNTIME_DIR") or self._path("runtime.d")
        if folder.startswith(DEFAULT_PAI_DIR + "/"):
            folder = self.pai_dir + folder.removeprefix(DEFAULT_PAI_DIR)
        path = os.path.join(folder, "env")
        with self._in_words(), contextlib.suppress(FileNotFoundError):
            return path, self._door.read(path)
        return path, b""

    def plugin_scripts(self) -> dict[str, str]:
        """Name to text of the scripts that programs of plugin folders wrote to ``runtime.d``."""
        folder = self._path("runtime.d")
        with self._in_words():
            names = [n for n in self._door.names(folder) if _PLUGIN_SCRIPT.fullmatch(n)]
            data = {n: self._door.read(os.path.join(folder, n)) for n in names}
        return {n: d.decode("utf-8", "surrogateescape") for n, d in data.items()}

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
            redact: texts to mask in all output.
            variables: more variables of the user's container; secret ones reach only the command.
            redact_used: texts to mask if a secret of the plan contains them.
        """
        given = variables or {}
        with self._in_words():
            secrets = SecretStore(tuple(redact))
            self._add_variables({n: v for n, v in given.items() if isinstance(v, str)})
            plan = _with_secrets(plan, {n: v for n, v in given.items() if isinstance(v, Secret)})
            self._add_tools(plan)
            moved = attrs.evolve(plan, modules=self._copied_modules(plan.modules))
            task = _command_of(plan)
            module = None if task is None else _module(plan, task)
            command = None if task is None or module is None else _command(plan, task, module)
            document = dump_plan(moved, secrets, command)
            values = secrets.dump()["values"].values()
            for text in redact_used:
                if any(text in value for value in values):
                    secrets.redact(text)
            self._write_secret(SECRETS_FILE, json.dumps(secrets.dump()))
            if module is not None:
                self._write_secret(SCRIPT_FILE, module.script_text())
            # Write the plan last: nothing starts while it is missing.
            data = json.dumps(document).encode()
            self._door.write(runtime_file(self.pai_dir, PLAN_FILE), data)

    def _add_tools(self, plan: Plan) -> None:
        """Copy the programs that the plan's modules need in the user's image."""
        load = plan_loader(plan.modules)
        needed = {tool for name in plan.modules for tool in load(name).tools}
        copy_tools(needed, find_tools(self._env), self._path("tools"), self._door)

    def _add_variables(self, variables: Mapping[str, str]) -> None:
        """Append to the environment file; the last line of a name wins."""
        if not variables:
            return
        path = runtime_file(self.pai_dir, ENVIRONMENT_FILE)
        before = b""
        with contextlib.suppress(FileNotFoundError):
            before = self._door.read(path)
        # Quote as the file's other lines do: PID 1 reads no other form.
        quoted = ((n, v.replace("'", "'\\''")) for n, v in variables.items())
        lines = (f"export {n}='{v}'\n" for n, v in quoted)
        self._door.write(path, before + "".join(lines).encode("utf-8", "surrogateescape"))

    def _write_secret(self, name: str, text: str) -> None:
        uid = self._env.get("PAIRUN_APP_UID", "")
        # If the user of the user's container is unknown, the boundary is the Pod.
        mode = 0o600 if uid.isdigit() else 0o644
        owner = int(uid) if uid.isdigit() and os.geteuid() == 0 else None
        self._door.write(runtime_file(self.pai_dir, name), text.encode(), mode, owner)

    def _copied_modules(self, modules: Mapping[str, ModuleFile]) -> dict[str, ModuleFile]:
        """Copy the source of every module that is not built in."""
        out = {}
        for name, module in modules.items():
            if module.built_in:
                out[name] = module
                continue
            source = planned_source(name, module)
            target = self._path("runtime.d", "modules", os.path.basename(source.path.rstrip("/")))
            copy = source._replace(path=target)
            for file, data in copy.files.items():
                self._door.make_folder(os.path.dirname(copy.place(file)))
                self._door.write(copy.place(file), data)
            out[name] = module._replace(path=target)
        return out


_OTHER = (
    "init would delete its content: set PAIRUN_PAI_DIR to a new or empty folder, "
    "or mount the volume there"
)


def _not_ours(why: str, hint: str) -> PairunError:
    return PairunError.of("PR701", f"the work directory cannot be used: {why}", None, hint)


def _with_secrets(plan: Plan, variables: Mapping[str, Secret]) -> Plan:
    """The plan with secret variables for the user's command, which are stored apart from it."""
    command = _command_of(plan)
    if command is None or not variables:
        return plan
    environment = {**command.environment, **variables}
    steps = (*plan.steps[:-1], attrs.evolve(command, environment=environment))
    return attrs.evolve(plan, steps=steps)


class _UserCommand(Protocol):
    """What the module of the user's command offers beyond a module's methods."""

    argv: list[str] | None
    shell: str
    signals: dict[str, Any]
    signals_to: str
    on_stop: OnStop | None

    def script_text(self) -> str:
        """The text of the file that the shell runs."""


def _command_of(plan: Plan) -> Task | None:
    last = plan.steps[-1] if plan.steps else None
    return last if isinstance(last, Task) and last.module == USER_COMMAND else None


def _module(plan: Plan, task: Task) -> _UserCommand:
    for late in _lates([task.args, task.environment]):
        why = f"depends on {late.because}: {late.where or late.template}"
        message = f"the user's command must be known before the run, and {why}"
        raise PairunError.of("PR305", message)
    module, problems = build(plan_loader(plan.modules)(task.module), task.args)
    assert not problems  # init has checked the plan
    return cast("_UserCommand", module)


def _command(plan: Plan, task: Task, module: _UserCommand) -> Command:
    """What PID 1 runs, ready to start."""
    given = {n: (v, variable_text(n, v)) for n, v in task.environment.items() if v is not None}
    return Command(
        grace_s=plan.grace_s,
        has_tasks=len(plan.steps) > 1,
        handlers=tuple(handler.id for handler in task.on_exit),
        environment={n: Secret(t) if isinstance(v, Secret) else t for n, (v, t) in given.items()},
        argv=tuple(module.argv or ()),
        shells=("bash", "sh") if module.shell == "auto" else (module.shell,),
        forwarding=read_forwarding(module.signals, module.signals_to),
        on_stop=module.on_stop,
    )


def _lates(value: Any) -> Iterator[Late]:
    if isinstance(value, Late):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _lates(each)

"""Runs a job on this machine: REST server, FrameworkController and kubelet in one loop."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import selectors
import signal
import time
from collections.abc import Callable, Mapping, Sequence

import attrs

from pairun.base.grace import GRACE_VARIABLE
from pairun.base.machine import MACHINE
from pairun.base.paths import KEY_FILE, PLAIN_FILES, STOP_NOTE
from pairun.base.signals import Signals
from pairun.engines.completionpolicy import Decision, Ended, RolePolicy, decide
from pairun.engines.local.activities import Activities, RoleLimits
from pairun.engines.local.freeports import draw_uid
from pairun.engines.local.instance import InstanceOutput, LocalInstance, PhaseName
from pairun.engines.local.isolation import Isolation, find_isolation
from pairun.engines.local.workdir import GANG, TRIAL, WorkDir
from pairun.job.model import Job, Role
from pairun.openpai.framework import make_framework, with_statuses
from pairun.openpai.platform import platform_environment
from pairun.report.live.view import View
from pairun.secrets.vault import Vault
from pairun.volume.stopnote import StopNote

LAYER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "local_layer.yaml")
"""The changes that this engine makes to the playbooks."""

HOST_IP = "127.0.0.1"
KILL_SLACK_S = 1.0
"""How long an instance may run after its grace time before it is killed, in seconds."""

_PASSED_ON = ("PAIRUN_PATH", "PAI_CONFIG_DIR")


@attrs.frozen(kw_only=True)
class RunOptions:
    """How to run a job.

    Attributes:
        workdir: the folder for all files of the run.
        namespaces: false to run without namespaces.
        grace_s: seconds between TERM and KILL when an instance must stop, exit handlers included.
        roots: further content roots.
    """

    workdir: str
    namespaces: bool = True
    grace_s: float = 30.0
    roots: Sequence[str] = ()


@attrs.frozen(kw_only=True)
class RunOutcome:
    """How a run ended.

    Attributes:
        exit_code: the exit code of ``pairun run``.
        decision: how the completion policy decided; None if the run was stopped before.
        stopped_by: the signal that stopped the run, or None.
        isolation: the isolation of the instances.
        instances: the instances, in the order of the job.
        workdir: the folder with all files of the run.
        lost: why standard output could not be written, or None.
    """

    exit_code: int
    decision: Decision | None
    stopped_by: signal.Signals | None
    isolation: Isolation
    instances: Sequence[LocalInstance]
    workdir: str
    lost: OSError | None


def stopper(number: signal.Signals | None) -> str:
    """What stopped a run, for people.

    Args:
        number: the signal; SIGPIPE means that the reader of the output is gone; None for no signal.
    """
    words = {signal.SIGINT: "Ctrl-C (SIGINT)", signal.SIGPIPE: "a closed output pipe"}
    return "an error of pairun's own" if number is None else words.get(number, number.name)


def base_environment() -> dict[str, str]:
    """A small environment like an image's own, from this machine's."""
    lang = os.environ.get("LANG", "")
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.environ.get("HOME", "/"),
        # In the C locale Python would set LC_CTYPE itself.
        "LANG": lang if lang not in ("", "C", "POSIX") else "C.UTF-8",
    }


def engine_environment(options: RunOptions, gang: str) -> dict[str, str]:
    """The variables that this engine sets for every init phase."""
    passed = {n: os.environ[n] for n in _PASSED_ON if os.environ.get(n)}
    if options.roots:
        roots = [*filter(None, passed.get("PAIRUN_PATH", "").split(":")), *options.roots]
        passed["PAIRUN_PATH"] = ":".join(map(os.path.abspath, roots))
    return {
        **passed,
        "PAIRUN_ENGINE": "local",
        "PAIRUN_BUNDLE": "",  # both phases run from this installation
        "PAIRUN_ENGINE_LAYER": LAYER,
        "PAIRUN_GANG_DIR": gang,
        "PAIRUN_FRAMEWORK_FILE": os.path.join(gang, "framework.json"),
        "PAIRUN_HOST_IP": HOST_IP,
    }


class LocalRun:
    """One run of a job.

    Args:
        job: the job, with the roles and instances to run.
        options: how to run it.
        vault: masks the instances' output.
        say: prints one line for people.

    Raises:
        PairunError: the work directory cannot be used, or too few ports are free.
    """

    def __init__(
        self,
        job: Job,
        options: RunOptions,
        vault: Vault,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._job = job
        self._options = options
        self._vault = vault
        self._workdir = WorkDir(options.workdir, say)
        trial = self._workdir.make(TRIAL)
        self._isolation = find_isolation(trial, wanted=options.namespaces)
        self._workdir.discard(TRIAL)
        self._gang = self._workdir.make(GANG)
        self._key = base64.b64encode(os.urandom(32)).decode()
        self.instances = self._make_instances()
        self._selector = selectors.DefaultSelector()
        self._ended: list[Ended] = []
        self._decision: Decision | None = None
        self._stopped_by: signal.Signals | None = None
        self._kill_at: float | None = None
        self._show_at = 0.0

    def run(self, view: View, limits: RoleLimits) -> RunOutcome:
        """Run the job to its end; then none of its processes runs any more.

        Args:
            limits: the time limits of tasks, for the view.
        """
        self._view = view
        self._activities = Activities(self.instances, limits)
        try:
            with Signals(resend=False) as signals:
                self._selector.register(signals.fd, selectors.EVENT_READ)
                for instance in self.instances:
                    self._start(instance, "init")
                while any(i.code is None for i in self.instances):
                    self._turn(signals)
            if (decided := self._decision) is not None:
                self._workdir.record(succeeded=decided.succeeded, because=decided.because)
        finally:
            self._kill_all()
            view.close()
            self._activities.close()
            self._selector.close()
            self._workdir.close()
        return RunOutcome(
            exit_code=self._exit_code(),
            decision=self._decision,
            stopped_by=self._stopped_by,
            isolation=self._isolation,
            instances=self.instances,
            workdir=self._options.workdir,
            lost=view.lost,
        )

    # --- preparing ---

    def _make_instances(self) -> list[LocalInstance]:
        taken: set[int] = set()
        drawn = {
            r.fc_name: [draw_uid(r, i, taken) for i in range(r.instances)] for r in self._job.roles
        }
        name = self._job.framework_id
        pods = {
            role: [
                {
                    "podUID": uid,
                    "podName": f"{name}-{role}-{index}",
                    "podIP": HOST_IP,
                    "podHostIP": HOST_IP,
                }
                for index, uid in enumerate(of_role)
            ]
            for role, of_role in drawn.items()
        }
        framework = with_statuses(make_framework(self._job), pods)
        _write(os.path.join(self._gang, "framework.json"), json.dumps(framework, indent=1))
        return [
            self._make_instance(role, index, drawn[role.fc_name][index])
            for role in self._job.roles
            for index in range(role.instances)
        ]

    def _make_instance(self, role: Role, index: int, uid: str) -> LocalInstance:
        label = f"{role.name}-{index}"
        folder = self._workdir.make(label)
        for below in ("pai", "pai/logs", "work", "mount"):
            os.mkdir(os.path.join(folder, below))
        if self._job.secrets is not None:
            os.mkdir(os.path.join(folder, "pai/secrets"), 0o700)
            # every JSON text is also a YAML text, with only one reading
            text = json.dumps(self._job.secrets.plain())
            _write(os.path.join(folder, "pai/secrets/secrets.yaml"), text)
        os.mkdir(os.path.join(folder, "pai", os.path.dirname(KEY_FILE)), 0o700)
        _write(os.path.join(folder, "pai", KEY_FILE), self._key)
        return LocalInstance(
            label=label,
            role=role.name,
            pod_uid=uid,
            folder=folder,
            environments=self._environments(role, index, uid, folder),
            isolation=self._isolation,
            open_output=lambda: InstanceOutput(
                os.path.join(folder, "output.log"),
                lambda line: self._output(label, line),
                self._vault,
            ),
        )

    def _environments(
        self, role: Role, index: int, uid: str, folder: str
    ) -> Mapping[PhaseName, Mapping[str, str]]:
        init, app = platform_environment(self._job, role, index, pod_uid=uid)
        shared = {**base_environment(), GRACE_VARIABLE: f"{self._options.grace_s:.3f}s"}
        # The folder is new, and `_make_instance` has written the secrets into it.
        shared[PLAIN_FILES] = "1"
        if not self._isolation.namespaces:
            shared["PAIRUN_PAI_DIR"] = os.path.join(folder, "pai")
        engine = engine_environment(self._options, self._gang)
        # In its user namespace an instance is root; without namespaces it is the current user.
        engine["PAIRUN_APP_UID"] = str(0 if self._isolation.namespaces else os.getuid())
        # No platform reads a termination message; plugins must not install software here.
        app = {**app, "PAIRUN_TERMINATION_LOG": "", "PAIRUN_ENGINE": engine["PAIRUN_ENGINE"]}
        return {"init": {**shared, **init, **engine}, "runtime": {**shared, **app}}

    # --- the loop ---

    def _turn(self, signals: Signals) -> None:
        for key, _ in self._selector.select(self._next_timer()):
            if isinstance(key.data, InstanceOutput) and key.data.read():
                self._selector.unregister(key.data.fd)
        for number in signals.take_stops():
            self._on_stop(number)
        for instance in self.instances:
            self._look(instance)
        if self._kill_at is not None and time.monotonic() >= self._kill_at:
            self._kill_all()
            self._kill_at = None
        if time.monotonic() >= self._show_at:
            self._show()

    def _show(self) -> None:
        """Refresh the view; if the reader is gone, stop the run, as in any pipeline."""
        for instance in self.instances:
            if instance.output is not None:
                instance.output.release()
        self._view.refresh(self._activities.standing())
        self._show_at = time.monotonic() + self._view.interval_s
        if isinstance(self._view.lost, BrokenPipeError) and self._stopped_by is None:
            self._on_stop(signal.SIGPIPE)

    def _output(self, label: str, line: bytes) -> None:
        if not (self._view.moves and self._activities.repeats(label, line)):
            self._view.output(label, line)

    def _next_timer(self) -> float:
        # SIGCHLD wakes the loop; a child that holds the output of an ended process does not.
        waits = [0.1] if any(i.is_draining for i in self.instances) else []
        waits += [at - time.monotonic() for at in (self._show_at, self._kill_at) if at is not None]
        return max(0.0, min(waits))

    def _start(self, instance: LocalInstance, phase: PhaseName) -> None:
        self._activities.begin(instance.label, phase)
        output = instance.start(phase)
        self._selector.register(output.fd, selectors.EVENT_READ, output)

    def _look(self, instance: LocalInstance) -> None:
        output = instance.output
        if output is None:
            return
        listening = output.fd in self._selector.get_map()
        if not instance.is_over(no_more_output=not listening):
            return
        if listening:
            self._selector.unregister(output.fd)
        instance.finish()
        if instance.code is None:
            self._start(instance, "runtime")
            return
        self._ended.append(Ended(instance.role, instance.label, instance.code, instance.last_phase))
        if self._decision is None and self._stopped_by is None:
            self._decide()

    # --- ending ---

    def _decide(self) -> None:
        policies = [
            RolePolicy(r.name, r.instances, r.min_failed, r.min_succeeded) for r in self._job.roles
        ]
        self._decision = decide(policies, self._ended, len(self.instances))
        if self._decision is not None:
            complete = "the job is complete: " if self._decision.succeeded else ""
            self._stop_all(f"stopped because {complete}{self._decision.because}")

    def _on_stop(self, number: signal.Signals) -> None:
        if self._stopped_by is not None:
            self._kill_all()
            return
        self._stopped_by = number
        if self._decision is None:
            by_person = number == signal.SIGINT
            self._stop_all(f"`pairun run` was stopped by {stopper(number)}", by_person=by_person)

    def _stop_all(self, why: str, *, by_person: bool = False) -> None:
        running = [i for i in self.instances if i.code is None]
        for instance in running:
            with contextlib.suppress(OSError):
                note = StopNote(by_person, why).text()
                _write(os.path.join(instance.volume, STOP_NOTE), note)
            instance.signal(signal.SIGTERM)
        if running and self._kill_at is None:
            self._kill_at = time.monotonic() + self._options.grace_s + KILL_SLACK_S

    def _kill_all(self) -> None:
        for instance in self.instances:
            if instance.code is None:
                instance.signal(signal.SIGKILL)

    def _exit_code(self) -> int:
        if self._decision is not None:
            return self._decision.code
        return 128 + (self._stopped_by or signal.SIGTERM)


def _write(path: str, text: str) -> None:
    with open(MACHINE.open_new(path), "w", encoding="utf-8") as f:
        f.write(text)

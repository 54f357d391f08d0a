"""The init phase of a Pod, from its inputs to the handover to the user's container."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pairun.base.paths import DEFAULT_PAI_DIR, DIAGNOSIS_FILE, journal_file, pai_dir
from pairun.contract.loading import plan_loader
from pairun.errors import PairunError, Problems
from pairun.executor.events import PhaseEvents
from pairun.executor.phase import Executor, PhaseOutcome, with_grace
from pairun.handover.door import Door
from pairun.handover.journal import Journal
from pairun.handover.volume import Volume
from pairun.init.envfile import read_variables
from pairun.init.meeting import Meeting
from pairun.init.podinput import (
    PodInput,
    has_cluster,
    read_cluster,
    read_pod_input,
)
from pairun.job.planning import (
    CLUSTER_UNKNOWN,
    RUNTIME_ENV_UNKNOWN,
    RolePlan,
    plan_role,
    secrets_of,
)
from pairun.kube.cluster import Cluster
from pairun.module import Failure, Secret
from pairun.openpai.environment import cluster_facts
from pairun.openpai.podconfig import EXIT_SPEC, with_config_dir
from pairun.openpai.startlayers import merged
from pairun.plan import Late, Plan
from pairun.playbook.content import open_content
from pairun.playbook.document.reading import decode, read_file
from pairun.playbook.effective import Layers
from pairun.playbook.expressions.template import resolve
from pairun.report.console import Console
from pairun.report.problems import print_problems
from pairun.runtime.exitmatching import EXIT_SPEC_FILE
from pairun.secrets.vault import Vault

if TYPE_CHECKING:
    from pairun.rendezvous.peers import JobPeers

EXIT_CODES = dict.fromkeys(("PR770", "PR771", "PR772", "PR774"), 252)
"""What the cluster's API server will not heal ends as the barrier would end; all else is 1."""

_TOLD = ("PR718", "PR719")
"""Warnings about this Pod itself; they are told first, whatever becomes of the rest."""


class InitPhase:
    """One run of the init phase.

    Args:
        roots: further content roots.
        env: the container's environment.
        placed: the Framework is a saved one, with every address that there will be.

    Raises:
        PairunError: the inputs cannot be used.
    """

    def __init__(self, roots: list[str], env: dict[str, str], *, placed: bool = False) -> None:
        self._env = env
        self._pai_dir = pai_dir()
        self._layers = Layers(open_content(roots, with_config_dir(env)))
        self._pod: PodInput = read_pod_input(self._pai_dir, env, placed=placed)
        self._redact = secrets_of(self._pod.job)
        self._conceal()
        self._cluster: Cluster | None = self._pod.cluster
        self._meeting: Meeting | None = None
        if self._cluster is None:
            self._meeting = Meeting(
                self._pod.job, self._pod.role, self._pod.index, env, self._pai_dir
            )
            self._env |= self._meeting.variables()
        self._warned = False
        # Told also where something else is an error later.
        warnings = [p for p in self._pod.problems if p.id in _TOLD]
        print_problems(warnings, vault=self._vault)

    def planned(self) -> RolePlan:
        """Both phases, as far as they are known now; everything is checked.

        Raises:
            PairunError: everything that is wrong.
        """
        problems = Problems()
        problems.extend(p for p in self._pod.problems if p.id not in _TOLD)
        layer = self._env.get("PAIRUN_ENGINE_LAYER")
        moved = self._pai_dir != DEFAULT_PAI_DIR
        planned = plan_role(
            self._layers,
            self._pod.job,
            self._pod.role,
            env={"init": self._env, "runtime": RUNTIME_ENV_UNKNOWN},
            cluster=cluster_facts(self._cluster) if self._cluster else CLUSTER_UNKNOWN,
            init_plugins=self._pod.init_plugins,
            engine=merged(read_file(layer, "engine") if layer else None, self._pod.engine),
            user_extension=self._pod.user_extension,
            command=self._pod.command,
            rewrite=(DEFAULT_PAI_DIR, self._pai_dir) if moved else None,
            problems=problems,
        )
        if problems.errors:
            raise PairunError(*problems)
        # The handover plans again, and finds the same.
        if not self._warned:
            print_problems(problems, vault=self._vault)
            self._warned = True
        self._conceal()
        return planned

    def _conceal(self) -> None:
        """Keep what was read until now out of all that is shown."""
        listed = self._pod.init_plugins
        settings = listed.place.source.concealed if listed else ()
        ours = self._layers.content.concealed()
        self._vault = Vault([*self._redact, *settings, *ours])

    def review(self) -> None:
        """Print what the tasks would do here; their probes are real, and nothing changes."""
        # Only `pairun init --dry-run` needs them.
        from pairun.report.review_text import print_phase
        from pairun.review.phasereview import probe_phase

        planned = self.planned()
        draft = planned.effective.drafts["init"]
        tasks = probe_phase(
            planned.plans["init"], draft, self._layers.content, self._env, self._pai_dir
        )
        print_phase("init", tasks, self._vault, sys.stdout)

    def run(self) -> int:
        """Check everything, run the tasks, hand over, run the exit handlers."""
        plan = with_grace(self.planned().plans["init"], self._env)
        volume = Volume(self._pai_dir, self._env)
        volume.prepare()
        self._add_exit_spec(volume)
        volume.add_program()
        console = Console(sys.stdout, self._vault)
        path = journal_file(self._pai_dir, self._env)
        journal = Journal(Door(self._pai_dir), path, self._vault.record, console.say)
        events = PhaseEvents(plan, journal, console)
        events.begin()
        if self._meeting is not None:
            self._meeting.begin(console.say)
        with self._executor(plan, events) as executor:
            outcome = executor.run_tasks()
            if outcome.event == "success":
                outcome = self._hand_over(volume, outcome)
            if outcome.event == "success":
                outcome = executor.stopped() or outcome
            outcome = executor.run_handlers(outcome)
            if self._meeting is not None:
                self._meeting.end(stay=outcome.event == "success")
            events.end(outcome)
        return outcome.exit_code

    def _add_exit_spec(self, volume: Volume) -> None:
        """Leave the cluster's exit spec for PID 1: as it is, and as PID 1 reads it."""
        if (spec := self._pod.exit_spec) is not None:
            volume.add(EXIT_SPEC, spec.text)
            volume.add(EXIT_SPEC_FILE, json.dumps(spec.data).encode())

    def _add_rules(self, volume: Volume) -> None:
        """Leave the rules that say why a command died."""
        from pairun.playbook.readyrules import ready_rules

        problems = Problems()
        volume.add(DIAGNOSIS_FILE, ready_rules(self._layers.content, self._env, problems))
        print_problems(problems, vault=self._vault)

    def _executor(self, plan: Plan, events: PhaseEvents) -> Executor:
        return Executor(
            plan,
            load=plan_loader(plan.modules),
            resolve=self._resolve,
            emit=events.emit,
            vault=self._vault,
            env=self._env,
            pai_dir=self._pai_dir,
            peers=self._peers,
        )

    def _peers(self) -> JobPeers | None:
        """The other instances, once the barrier has left their addresses."""
        if self._meeting is None or not has_cluster(self._pai_dir):
            return None
        with contextlib.suppress(PairunError, OSError):
            self._meeting.note(self._known_cluster())
        return self._meeting.peers()

    def _resolve(self, late: Late, results: Mapping[str, Any], env: Mapping[str, str]) -> Any:
        names: dict[str, Any] = {"results": results, "env": env}
        if _mentions(late, "cluster"):
            names["cluster"] = cluster_facts(self._known_cluster())
        return resolve(late, names)

    def _known_cluster(self) -> Cluster:
        if self._cluster is None:
            self._cluster = read_cluster(self._pai_dir, self._env, self._pod.job)
        return self._cluster

    def _hand_over(self, volume: Volume, outcome: PhaseOutcome) -> PhaseOutcome:
        """Make the runtime plan anew, now that peers are known, and leave it on the volume."""
        try:
            self._add_rules(volume)
            cluster = self._known_cluster()
            if self._meeting is not None:
                self._meeting.note(cluster)
            variables = {n: self._secret(v) for n, v in _variables(volume).items()}
            plan = self.planned().plans["runtime"]
            # The cluster's secrets are not the job's: what its plan does not need stays here.
            ours = self._layers.content.concealed()
            volume.hand_over(plan, self._redact, variables, redact_used=ours)
        except PairunError as e:
            print_problems(e.problems, vault=self._vault)
            return PhaseOutcome(event="failure", exit_code=1, message="the handover failed")
        except Failure as e:
            return PhaseOutcome(event="failure", exit_code=1, message=f"the handover: {e.message}")
        except Exception as e:  # noqa: BLE001 - the exit handlers must run whatever this is
            message = f"the handover: {type(e).__name__}: {e}"
            return PhaseOutcome(event="failure", exit_code=1, message=message)
        return outcome

    def _secret(self, value: str) -> str | Secret:
        """A value that holds a secret of the job stands apart from the others."""
        return value if self._vault.text(value) == value else Secret(value)


def _variables(volume: Volume) -> dict[str, str]:
    """What the init tasks hand to the user's container.

    Raises:
        PairunError: the file is not valid.
    """
    path, text = volume.variables_file()
    problems = Problems()
    variables = read_variables(decode(text, path, "cluster"), problems)
    problems.raise_errors()
    return variables


def _mentions(value: Any, name: str) -> bool:
    """Whether a late value, or a variable that it uses, has a name in it."""
    if isinstance(value, Late):
        return name in value.template or _mentions(value.vars, name)
    if isinstance(value, Mapping):
        return any(_mentions(v, name) for v in value.values())
    return isinstance(value, list | tuple) and any(_mentions(v, name) for v in value)

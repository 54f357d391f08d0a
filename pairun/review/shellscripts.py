"""The scripts of a job and of a content root's files, with the places of their lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from pairun.job.hiding import leaves
from pairun.job.planning import RolePlan
from pairun.job.scripts import Script, command_script, node_lines
from pairun.module import Secret
from pairun.plan import USER_COMMAND, Plan, Task
from pairun.playbook.document.reading import Node
from pairun.playbook.drafts import TaskDraft

SCRIPT_ARGUMENTS = ("script", "unless")
"""The module arguments that contain shell scripts."""

_EXPRESSION = re.compile(r"\{\{.*?\}\}", re.DOTALL)


_SET_OUTSIDE = re.compile(
    # by OpenPAI, FrameworkController, pairun, Kubernetes or a launcher
    r"(?:PAI|FC|PAIRUN|KUBERNETES|KUBE|HIVED|JOBSET|NVIDIA|NCCL|OMPI|PMI|SLURM)_\w+"
    r"|USER_CMD|GANG_ALLOCATION|REST_SERVER_URI|STORAGE_CONFIGS"
    r"|\w+_(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_\d+_(?:TCP|UDP)\w*)"
    # by base images of languages and accelerators
    r"|LANG|LC_\w+|TZ|DEBIAN_FRONTEND|HTTPS?_PROXY|NO_PROXY|https?_proxy|no_proxy"
    r"|CUDA_VERSION|CUDNN_VERSION|NV_\w+|ROCM_\w+|CONDA_DIR|CONDA_EXE|MAMBA_\w+"
    r"|PYTHON_VERSION|PYTHON_\w+|JAVA_HOME|HADOOP_\w+|SPARK_HOME|GOPATH|GOROOT|GOLANG_VERSION"
    r"|NODE_VERSION|NVM_DIR|R_HOME|JULIA_\w+|CARGO_HOME|RUSTUP_HOME|PIP_\w+|UV_\w+"
)
"""Variables that a command finds set."""

_ASSIGNED = re.compile(r"\b([A-Za-z_]\w*)=|\bread\s+([A-Za-z_]\w*)")
_READS_OTHERS = re.compile(r"(?m)^\s*(?:source|\.|eval|conda|mamba|module)\s")


class Checked(NamedTuple):
    """A script to check.

    Attributes:
        script: the script.
        sets: the variables that are set before it, besides those of the platform and the image; None
            if an unset variable does not end it, or these are unknown.
        image_sets: programs of the cluster may set variables in upper case, too.
    """

    script: Script
    sets: frozenset[str] | None = None
    image_sets: bool = False

    def may_be_unset(self, name: str) -> bool:
        """Whether the script ends if it uses a variable that it does not set itself."""
        if self.sets is None or name in self.sets or (self.image_sets and name.isupper()):
            return False
        return _SET_OUTSIDE.fullmatch(name) is None


def scripts_of_plan(plan: RolePlan, *, other_settings: bool = False) -> Iterator[Checked]:
    """The user's command of a role, and the scripts of its plugins, its job and its cluster.

    Args:
        plan: of the role.
        other_settings: programs of the cluster may set more variables, as in a plain Pod.
    """
    sets = _set_before_command(plan.plans["runtime"]) if "runtime" in plan.plans else None
    yield Checked(command_script(plan.job, plan.role), sets, other_settings)
    for phase, phase_plan in plan.plans.items():
        drafts = plan.effective.drafts[phase].by_id()
        for task in phase_plan.tasks():
            if task.module != USER_COMMAND and (found := drafts.get(task.id)) is not None:
                texts = _written_texts(found)
                for each in (task, *task.on_exit):
                    yield from map(Checked, _scripts_of(each, texts, found))


def _set_before_command(runtime: Plan) -> frozenset[str] | None:
    """The variables that the command's task and the scripts before it set; None if unknown."""
    names: set[str] = set()
    for task in runtime.tasks():
        if task.module == USER_COMMAND:
            without = task.args.get("nounset") is False
            return None if without else frozenset({*names, *task.environment})
        if task.when is not False and task.args.get("export"):
            script = task.args.get("script")
            text = script.reveal() if isinstance(script, Secret) else script
            if not isinstance(text, str) or _READS_OTHERS.search(text):
                return None
            names |= {one or other for one, other in _ASSIGNED.findall(text)}
    return None


def _written_texts(draft: TaskDraft) -> list[Node]:
    """The possible sources of a task's scripts: the job's parameters, and texts of other roots."""
    given = leaves(draft.given) if draft.given is not None else ()
    own = (leaf for leaf in leaves(draft.node) if leaf.place.source.layer != "built-in")
    return [leaf for leaf in (*given, *own) if isinstance(leaf.value, str)]


def _scripts_of(task: Task, texts: list[Node], draft: TaskDraft) -> Iterator[Script]:
    for name in SCRIPT_ARGUMENTS:
        value = task.args.get(name)
        text = value.reveal() if isinstance(value, Secret) else value
        if not isinstance(text, str) or not texts:
            continue
        known = {
            text.value[at:].split("\n", 1)[0].strip(): (text, at)
            for node in reversed(texts) for text, at in node_lines(node)
        }  # fmt: skip
        lines = [known.get(line.strip()) for line in text.split("\n") if line.strip()]
        if not any(lines):
            continue  # a built-in script, or the result of an expression
        yield Script(
            name=f"the {name} of the task '{draft.id}'",
            text=text,
            lines=tuple(_filled([known.get(line.strip()) for line in text.split("\n")])),
            secret=isinstance(value, Secret),
        )


def _filled(lines: list[tuple[Node, int] | None]) -> Iterator[tuple[Node, int]]:
    """The lines without gaps: each missing line gets the place of the line before it."""
    last = next(line for line in lines if line is not None)
    for line in lines:
        last = line or last
        yield last


def scripts_of_file(document: Node) -> Iterator[Checked]:
    """The scripts in a playbook or plugin spec; scripts with statements are checked with a job."""
    for name, node in _named_leaves(document, ""):
        text = node.value
        if name not in SCRIPT_ARGUMENTS or not isinstance(text, str) or "{%" in text:
            continue
        plain = _EXPRESSION.sub(lambda e: re.sub(r"[^\n]", "x", e[0]), text)
        if plain.strip("x \n"):
            yield Checked(Script(f"the {name}", plain, tuple(node_lines(node))))


def _named_leaves(node: Node, name: str) -> Iterator[tuple[str, Node]]:
    if not isinstance(node.value, dict | list):
        yield name, node
    for key, child in node.items():
        yield from _named_leaves(child, key)
    for child in node.elements():
        yield from _named_leaves(child, name)

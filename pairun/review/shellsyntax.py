"""Checks the scripts of a job: ``bash -n`` finds syntax errors, ShellCheck mistakes; neither runs a script.

Only ``pairun lint`` uses this: a review reads nothing from this machine.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pairun.base.foreignjson import parse_json
from pairun.errors import Problem, Severity
from pairun.job.hiding import leaves
from pairun.job.planning import RolePlan
from pairun.job.scripts import ShellText, command_script, node_lines
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

    script: ShellText
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
    written = (draft.node,) if draft.given is None else (draft.given, draft.node)
    return [
        leaf
        for node in written
        for leaf in leaves(node)
        if leaf.place.source.layer != "built-in" and isinstance(leaf.value, str)
    ]


def _scripts_of(task: Task, texts: list[Node], draft: TaskDraft) -> Iterator[ShellText]:
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
        yield ShellText(
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
            yield Checked(ShellText(f"the {name}", plain, tuple(node_lines(node))))


def _named_leaves(node: Node, name: str) -> Iterator[tuple[str, Node]]:
    if not isinstance(node.value, dict | list):
        yield name, node
    for key, child in node.items():
        yield from _named_leaves(child, key)
    for child in node.elements():
        yield from _named_leaves(child, name)


_TIMEOUT_S = 10.0
_LINE = re.compile(r"^/dev/stdin: line (\d+): (warning: )?(.*)$", re.MULTILINE)
_QUOTED = re.compile(r"`[^`]*'")
_UNASSIGNED = 2154
"""ShellCheck's code for a variable that is used and that nothing sets: https://www.shellcheck.net/wiki/SC2154"""
_SETS_OTHERS = re.compile(
    r"^\s*(?:set \+(?:\w*u|o nounset)|source|\.|eval|(?:conda|mamba|micromamba|module|ml|spack|workon|nvm|pyenv)\b)",
    re.MULTILINE,
)
"""A command after which variables may be set, or may be unset, that ShellCheck does not know."""


class Complaint(NamedTuple):
    """Bash's complaint about a script: message, line from 1, whether it is only a warning."""

    words: str
    line: int
    is_warning: bool


class ShellSyntax:
    """Checks each text once.

    Args:
        shell: the path of bash; by default the one in PATH, if any.
        shellcheck: the path of ShellCheck; by default that of the extra ``lint``, or the one in PATH.
    """

    def __init__(self, shell: str | None = None, shellcheck: str | None = None) -> None:
        self._shell = shell or shutil.which("bash")
        beside = os.path.join(os.path.dirname(sys.executable), "shellcheck")
        self._shellcheck = shellcheck or shutil.which(beside) or shutil.which("shellcheck")
        self._complaints: dict[str, Complaint | None] = {}
        self._mistakes: dict[str, list[dict[str, Any]]] = {}
        self._unread = 0

    def check(self, scripts: Iterable[Checked]) -> Iterator[Problem]:
        """Yield the problems of scripts: an error for each that bash cannot read, and warnings."""
        for each in scripts:
            text = each.script.text
            if text not in self._complaints:
                self._complaints[text] = self._complaint(text)
            if (complaint := self._complaints[text]) is not None:
                yield _problem(each.script, complaint)
            elif not each.script.secret:  # ShellCheck quotes parts of a script
                if text not in self._mistakes:
                    self._mistakes[text] = self._found_by_shellcheck(text)
                yield from _warnings(each, self._mistakes[text])

    def unread(self) -> Iterator[Problem]:
        """Yield a note if scripts were not checked, because bash is missing or did not respond."""
        if self._unread:
            count = f"{self._unread} script{'s' * (self._unread != 1)}"
            why = "bash did not answer in time" if self._shell else "bash is not installed here"
            message = f"the syntax of {count} was not checked: {why}"
            yield Problem("PR926", message, None, "lint where bash is installed", "warning")

    def _complaint(self, text: str) -> Complaint | None:
        options = ["-O", "extglob"] if "extglob" in text else []
        # Without an environment bash reads no file, and its messages are in English.
        argv = [self._shell, "--norc", "--noprofile", *options, "-n", "/dev/stdin"]
        done = _run(argv, text) if self._shell else None
        if done is None:
            self._unread += 1
            return None
        said = _LINE.search(done.stderr.decode("utf-8", "replace"))
        return Complaint(said[3], int(said[1]), bool(said[2])) if said else None

    def _found_by_shellcheck(self, text: str) -> list[dict[str, Any]]:
        """ShellCheck's errors and unset variables; none if it is missing or does not respond."""
        options = ["--norc", "--shell=bash", "--enable=check-unassigned-uppercase"]
        argv = [self._shellcheck, *options, "--severity=warning", "--format=json1", "-"]
        done = _run(argv, text) if self._shellcheck else None
        if done is None or done.returncode not in (0, 1):  # 2 and more: it could not check
            return []
        comments: list[dict[str, Any]] = parse_json(done.stdout)["comments"]
        return [c for c in comments if c["level"] == "error" or c["code"] == _UNASSIGNED]


def _run(argv: Sequence[Any], text: str) -> subprocess.CompletedProcess[bytes] | None:
    data = text.replace("\0", " ").encode("utf-8", "replace")
    try:
        return subprocess.run(
            argv, input=data, env={"LC_ALL": "C.UTF-8"}, capture_output=True, timeout=_TIMEOUT_S,
            check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None


def _warnings(checked: Checked, mistakes: Iterable[dict[str, Any]]) -> Iterator[Problem]:
    script = checked.script
    others = _SETS_OTHERS.search(script.text)
    reported: set[str] = set()
    for each in mistakes:
        offset = script.offset(each["line"], each["column"])
        if each["code"] != _UNASSIGNED:
            message = f"{script.name}: {each['message']} (SC{each['code']})"
            hint = f"see https://www.shellcheck.net/wiki/SC{each['code']}"
            yield Problem("PR935", message, script.place(offset), hint, "warning")
            continue
        name = str(each["message"]).split()[0]
        late = others is not None and others.start() < offset
        if checked.may_be_unset(name) and not late and name not in reported:
            reported.add(name)
            place, hint = script.place(offset), f"write ${{{name}:-}}"
            yield Problem("PR903", _unset(name), place, hint, "warning")


def _unset(name: str) -> str:
    unbound = "the command fails with 'unbound variable'"
    if name.isupper():
        return f"the job does not set ${name}; unless the image does, {unbound}"
    return f"nothing sets ${name}, so {unbound}"


def _problem(script: ShellText, complaint: Complaint) -> Problem:
    words = complaint.words
    if script.secret:
        words = _QUOTED.sub("…", words)  # bash quotes a part of the text
    severity: Severity = "warning" if complaint.is_warning else "error"
    message = f"bash cannot read {script.name}: {words}"
    if complaint.is_warning:
        message = f"{script.name}: {words}"
    place = script.place_of_line(complaint.line)
    return Problem("PR516", message, place, _hint(words), severity)


def _hint(words: str) -> str | None:
    """The usual cause of a complaint."""
    if "looking for matching" in words:
        return "a quote or bracket that begins here is not closed"
    if "unexpected end of file" in words:
        return "an 'if', 'for', 'while', 'case' or '{' is not closed"
    if "here-document" in words:
        return "the line that ends the here document must hold nothing else"
    return None

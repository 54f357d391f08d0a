"""Checks that the modules, plugins, keywords and arguments named in a policy exist."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pairun.contract.arguments import arguments
from pairun.errors import PairunError, Problem, did_you_mean, nearest
from pairun.playbook.content import Content
from pairun.playbook.document.nodes import elements, entries
from pairun.playbook.document.reading import Node
from pairun.playbook.keywords import keywords_of
from pairun.playbook.pluginfolders import folder_plugins
from pairun.playbook.policy import Policy, unknown_pod_paths
from pairun.playbook.specs import PHASES

_FIXED = ("id", "event")
"""Keywords that no patch can change."""


def unknown_names(policy: Node, content: Content, tasks: dict[str, str]) -> Iterator[Problem]:
    """Warn of names in a policy that do not exist.

    These are warnings, because a cluster may name what only another version has.

    Args:
        policy: the policy document.
        content: the content roots.
        tasks: id to module of the tasks below the job.
    """
    yield from unknown_pod_paths(Policy(policy))
    may = policy.get("job_may")
    if may is None:
        return
    known = {*content.modules, *content.specs, *tasks}
    for name, entry in entries(may, "patch"):
        yield from _task_name(name, entry, known)
        module = name if name in content.modules else tasks.get(name)
        for path in entry.elements():
            yield from _path(path, module, content)
    for node in elements(may, "disable"):
        yield from _task_name(str(node.value), node, known)
    for phase in PHASES:
        for node in elements(may.get("insert"), phase):
            yield from _inserted(node, phase, content)
    read = Policy(policy)
    plugins = {*content.specs, *folder_plugins(content, read).folders}
    yield from read.unknown_plugins(plugins, "allow", "deny")


def _task_name(name: str, node: Node, known: set[str]) -> Iterator[Problem]:
    """Warn only of near misses: a prerequisite may give a task any id."""
    if {name, re.sub(r"_\d+$", "", name)} & {*known, "*"} or not (near := nearest(name, known)):
        return
    message, place = f"there is no task or module '{name}'", node.key or node.place
    yield Problem("PR406", message, place, f"did you mean '{near}'?", "warning")


def _path(node: Node, module: str | None, content: Content) -> Iterator[Problem]:
    keyword, _, rest = str(node.value).partition(".")
    known = [k for k in keywords_of("task") if k not in _FIXED]
    if keyword not in (*known, "args", "*"):
        message = f"there is no keyword '{keyword}'"
        yield _warning(message, node, did_you_mean(keyword, [*known, "args"]))
    elif keyword == "args" and rest and module is not None:
        name = rest.partition(".")[0]
        try:
            names = [a.name for a in arguments(content.module(module))]
        except PairunError as e:
            yield from (p._replace(severity="warning") for p in e.problems)
            return
        if name not in (*names, "*"):
            message = f"the module '{module}' has no argument '{name}'"
            yield _warning(message, node, did_you_mean(name, names))


def _inserted(node: Node, phase: str, content: Content) -> Iterator[Problem]:
    name = str(node.value)
    if name not in (*content.modules, "*"):
        message = f"there is no module '{name}'"
        yield _warning(message, node, did_you_mean(name, content.modules))
    elif name != "*":
        try:
            phases = content.module(name).phases
        except PairunError as e:
            yield from (p._replace(severity="warning") for p in e.problems)
            return
        if phase not in phases:
            message = f"the module '{name}' does not run in {phase}"
            yield _warning(message, node, f"it runs in {' and '.join(phases)}")


def _warning(message: str, node: Node, hint: str | None) -> Problem:
    return Problem("PR406", message, node.place, hint, "warning")

"""Checks that every expression of a file compiles; it needs no job."""

from __future__ import annotations

from collections.abc import Callable

from pairun.errors import PairunError, Place, Problems
from pairun.playbook.document.reading import Node
from pairun.playbook.expressions.template import MISSING, check_condition, check_text, is_template

_NOT_RENDERED = ("parameters", "phase", "summary")
"""Top-level keys of a file whose texts are data."""

_TASKS = ("tasks", "patches", "init", "runtime", "on_exit")


def check_expressions(document: Node, problems: Problems) -> None:
    """Compile every expression of a playbook or a plugin spec."""
    for name, node in document.items():
        if name in _TASKS:
            for task in node.elements():
                _check_task(task, problems)
        elif name not in _NOT_RENDERED:
            _check_texts(node, problems)


def _check_task(task: Node, problems: Problems) -> None:
    """Check a task, a group or a patch; its ``when`` is an expression without braces."""
    for name, node in task.items():
        if name in _TASKS:
            for inner in node.elements():
                _check_task(inner, problems)
        elif name == "when" and isinstance(node.value, str):
            _collect(check_condition, node, problems)
        else:
            _check_texts(node, problems)


def _check_texts(node: Node, problems: Problems) -> None:
    if is_template(node.value):
        _collect(check_text, node, problems)
    for child in (*node.elements(), *(child for _, child in node.items())):
        _check_texts(child, problems)


def _collect(
    check: Callable[[str, Place | None], frozenset[str]], node: Node, problems: Problems
) -> None:
    text = str(node.value)
    try:
        names = check(text, node.place)
    except PairunError as e:
        problems.extend(e.problems)
        return
    # An expression may ask whether a name is defined.
    is_jobs = node.place.source.layer == "job"
    if "secrets" in names and not is_jobs and not ("default" in text or "defined" in text):
        problems.error("PR301", "'secrets' is not defined", node.place, MISSING["secrets"])

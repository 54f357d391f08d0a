"""Checks that every expression of a file compiles and uses only names that exist; it needs no job."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet

from pairun.errors import PairunError, Place, Problems, did_you_mean
from pairun.playbook.document.reading import Node, entries
from pairun.playbook.expressions.template import (
    MISSING,
    check_condition,
    check_text,
    inside,
    is_template,
)
from pairun.playbook.expressions.views import GLOBALS

_NOT_RENDERED = ("parameters", "phase", "summary")
"""Top-level keys of a file whose texts are data."""

_TASKS = ("tasks", "patches", "init", "runtime", "on_exit")


def check_expressions(document: Node, known: AbstractSet[str], problems: Problems) -> None:
    """Check every expression of a playbook or a plugin spec.

    Args:
        known: the names that exist, without the file's own variables.
    """
    known = _with_variables(document, known)
    for name, node in document.items():
        if name in _TASKS:
            for task in node.elements():
                _check_task(task, known, problems)
        elif name not in _NOT_RENDERED:
            _check_texts(node, known, problems)


def _with_variables(node: Node, known: AbstractSet[str]) -> AbstractSet[str]:
    return known | {name for name, _ in entries(node, "vars")}


def _check_task(task: Node, known: AbstractSet[str], problems: Problems) -> None:
    """Check a task, a group or a patch; its ``when`` is an expression without braces."""
    known = _with_variables(task, known)
    for name, node in task.items():
        if name in _TASKS:
            for inner in node.elements():
                _check_task(inner, known, problems)
        elif name == "when" and isinstance(node.value, str):
            _check(check_condition, node, known, problems)
        else:
            _check_texts(node, known, problems)


def _check_texts(node: Node, known: AbstractSet[str], problems: Problems) -> None:
    if is_template(node.value):
        _check(check_text, node, known, problems)
    for child in (*node.elements(), *(child for _, child in node.items())):
        _check_texts(child, known, problems)


def _check(
    names_of: Callable[[str, Place | None], frozenset[str]],
    node: Node,
    known: AbstractSet[str],
    problems: Problems,
) -> None:
    text = str(node.value)
    try:
        names = names_of(text, node.place)
    except PairunError as e:
        problems.extend(e.problems)
        return
    if "default" in text or "defined" in text:
        return  # an expression may ask whether a name is defined
    layer = node.place.source.layer
    allowed = known | GLOBALS | ({"secrets"} if layer == "job" else set())
    for name in sorted(names - allowed):
        hint = MISSING.get(name) or did_you_mean(name, known)
        # The layers of a file outside the content roots may have further variables.
        report = problems.warning if layer == "file" and name not in MISSING else problems.error
        report("PR301", f"'{name}' is not defined", inside(node.place, text, name), hint)

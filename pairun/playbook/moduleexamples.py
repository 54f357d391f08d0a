"""The example of a module: its form as a task, and its mistakes."""

from __future__ import annotations

from collections.abc import Iterator

from pairun.errors import PairunError, Place, Problem, Problems, Source
from pairun.module import Module
from pairun.playbook.document.checking import KEYWORD_FORMAT, violations
from pairun.playbook.document.reading import elements, read_text
from pairun.playbook.drafts import draft_task
from pairun.playbook.effective import NAMES
from pairun.playbook.expressions.filecheck import check_expressions
from pairun.playbook.keywords import playbook_schema
from pairun.playbook.taskchecks import check_written_arguments


def example_task(module: type[Module]) -> Iterator[str]:
    """The lines of a list of tasks that contains the module's example.

    Args:
        module: its class.
    """
    for n, line in enumerate(["name: One sentence for people", *module.example.splitlines()]):
        yield f"{'- ' if n == 0 else '  '}{line}"


def example_problems(name: str, module: type[Module], place: Place) -> Iterator[Problem]:
    """Yield a warning for each mistake in a module's example; a run does not need the example.

    Args:
        name: the module's name.
        module: its class.
        place: where the class sets the example.
    """
    example: object = module.example  # of a class that nothing has checked
    if not isinstance(example, str):
        message = f"the example of {name} must be text, not {type(example).__name__}"
        yield Problem("PR603", message, place, f'write example = "{name}: {{…}}"', "warning")
        return
    if not example:
        return
    for p in _task_problems(name, module):
        message = f"the example of {name} is invalid: {p.message}"
        yield Problem(p.id, message, place, p.hint, "warning")


def _task_problems(name: str, module: type[Module]) -> Problems:
    """The problems of a playbook with the example as its only task."""
    problems = Problems()
    text = "\n".join(["phase: init", "tasks:", *example_task(module), ""])
    try:
        playbook = read_text(Source("its text", "cluster", text))
    except PairunError as e:
        problems.extend(e.problems)
        return problems
    schema = playbook_schema({name: {}})
    problems.extend(violations(playbook, schema, KEYWORD_FORMAT))
    check_expressions(playbook, NAMES, problems)
    for node in elements(playbook, "tasks"):
        if task := draft_task(node, {name: module}, "file", problems):
            check_written_arguments(task, module, problems)
    return problems

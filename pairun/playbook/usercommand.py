"""Checks that the user's command is the last task of the runtime phase, and that it runs."""

from __future__ import annotations

import attrs

from pairun.errors import Problems
from pairun.plan import USER_COMMAND, Group, Plan, Task
from pairun.playbook.drafts import Draft


def check_user_command(draft: Draft, plan: Plan, problems: Problems) -> None:
    """Report a command that is not the last task of its phase, or that never runs.

    Args:
        draft: the playbook of one phase.
        plan: the compiled draft.
        problems: takes every error.
    """
    for n, step in enumerate(plan.steps):
        for task in step.tasks if isinstance(step, Group) else (step,):
            if task.module == USER_COMMAND and task is not plan.steps[-1]:
                after = attrs.evolve(plan, steps=plan.steps[n + 1 :])
                later = draft.find(next(after.tasks(), task).id)
                problems.error(
                    "PR208",
                    "user_command must be the last task of its phase",
                    later.place if later else None,
                    "use on_exit for what must happen after the command",
                )
    if plan.phase == "runtime":
        _check_it_runs(draft, plan, problems)


def _check_it_runs(draft: Draft, plan: Plan, problems: Problems) -> None:
    never = {step.id for step in plan.steps if isinstance(step, Task) and step.when is False}
    commands = [d for d in draft.tasks() if d.module == USER_COMMAND]
    if any(not d.disabled and d.id not in never for d in commands):
        return
    place = draft.place
    for d in commands:
        when = d.node.get("when")
        place = d.disabled or (when.place if when else place)
    problems.error(
        "PR205",
        "'user_command' is missing" + (": removed here" if commands else ""),
        place,
        "it is the last task of the runtime phase: user_command: {script: …}",
    )

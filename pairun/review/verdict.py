"""The verdict on a task: what it would change, without running it."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from pairun.contract.arguments import build, error_text
from pairun.module import (
    CheckModule,
    Context,
    Failure,
    Module,
    Secret,
    Skip,
    StateModule,
    UnknownUntilRun,
    Verdict,
    unknown,
)
from pairun.plan import EXPAND, Late, Task

CHECKED = "checked at run time"
"""The beginning of a verdict on a check that will really check."""


def judge(task: Task, cls: type[Module], context: Context) -> Verdict:
    """Make the verdict on a task; the context must not be changed.

    Args:
        task: the task; its arguments may be unknown until it runs.
        cls: its module's class.
        context: a read-only context.
    """
    late = next((v for v in late_values(task.args) if v is not task.when), None)
    if issubclass(cls, CheckModule):
        depends = f": depends on {late.because}" if late else ""
        return Verdict("check", f"{CHECKED}{depends}")
    if late is not None:
        certain = cls.certainly if issubclass(cls, StateModule) else ""
        return Verdict("unknown", f"depends on {late.because}", does=certain)
    try:
        # Standard output may be JSON (--json): keep a module's prints out of it.
        with contextlib.redirect_stdout(sys.stderr):
            return _planned(task, cls, context)
    except UnknownUntilRun as e:
        return unknown(e.because)
    except Skip as e:
        return Verdict("no_change", e.because)
    except Failure as e:
        return unknown(f"it would fail: {e.message}")
    except (Exception, SystemExit) as e:  # noqa: BLE001 - a module's code may raise anything
        return unknown(f"the module's probe failed: {error_text(e)}")


def _planned(task: Task, cls: type[Module], context: Context) -> Verdict:
    module, problems = build(cls, task.args)
    if module is None:
        return unknown("; ".join(p.message for p in problems))
    assert isinstance(module, StateModule)
    verdict: object = module.plan(module.probe(context))
    if isinstance(verdict, Verdict):
        return verdict
    what = type(verdict).__name__
    return unknown(f"the module's probe failed: plan returned {what}, not a verdict")


def late_values(value: Any) -> Iterator[Late]:
    """Every late value in a task's data."""
    if isinstance(value, Late):
        yield value
    elif isinstance(value, Mapping):
        for v in value.values():
            yield from late_values(v)
    elif isinstance(value, list | tuple):
        for v in value:
            yield from late_values(v)


def known_in_container(value: Any) -> Iterator[str | Secret]:
    """The texts in a value that only the user's container can expand, such as ``$HOME/x``.

    Args:
        value: the value of an argument or a variable of a planned task.
    """
    if isinstance(value, Late):
        if value.template == EXPAND:
            yield value.vars["text"]
            return
        parameters = value.vars.get("expanded", {})
        for name in re.findall(r"\bexpanded\.(\w+)", value.template):
            yield from known_in_container(parameters.get(name))
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from known_in_container(each)
    elif isinstance(value, list):
        for each in value:
            yield from known_in_container(each)

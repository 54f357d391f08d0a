"""The differences of jobs, as text for people and as plain data for JSON; secrets are masked."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from typing import IO, Any

from pairun.errors import Problem
from pairun.plan import Late
from pairun.playbook.content import Content
from pairun.report.problems import print_problems, problem_data, problem_text
from pairun.report.shown import shown_data
from pairun.report.tint import Printer
from pairun.review.comparison import TASK, Change, Comparison, JobDiff, RoleDiff, Value
from pairun.secrets.vault import Vault

_SCHEMA = 2
_SHORT = 60


def comparison_data(comparison: Comparison) -> dict[str, Any]:
    """Return the whole document."""
    vault = comparison.vault
    return {
        "schema": _SCHEMA,
        "roots": {"old": _roots(comparison.old), "new": _roots(comparison.new)},
        "differs": comparison.any,
        "shared": _changes(comparison.shared, vault),
        "jobs": {
            job.path: {
                "compared": not all(role.missing for role in job.roles.values()),
                "roles": {name: _role(role, vault) for name, role in job.roles.items()},
                "problems": {
                    side: [problem_data(p, vault) for p in problems]
                    for side, problems in job.problems.items()
                },
            }
            for job in comparison.jobs
        },
        "problems": [],
    }


def refused_data(problems: Sequence[Problem], vault: Vault) -> dict[str, Any]:
    """Return the document of a comparison that could not start."""
    return {"schema": _SCHEMA, "jobs": {}, "problems": [problem_data(p, vault) for p in problems]}


def _roots(content: Content) -> list[dict[str, str]]:
    return [{"layer": r.layer, "path": r.path, "digest": r.digest()} for r in content.roots]


def _role(role: RoleDiff, vault: Vault) -> dict[str, Any]:
    missing = {"cannot_be_planned": role.missing} if role.missing else {}
    return {**missing, "changes": _changes(role.changes, vault)}


def _changes(changes: Sequence[Change], vault: Vault) -> list[dict[str, Any]]:
    def data(value: Value | None) -> dict[str, Any] | None:
        if value is None:
            return None
        return {"value": shown_data(value.value, vault), "by": vault.text(value.setter)}

    return [{"path": c.path, "old": data(c.old), "new": data(c.new)} for c in changes]


# --- text ----------------------------------------------------------------------------------------


def print_comparison(comparison: Comparison, stream: IO[str]) -> None:
    """Print the differences; problems of both sides go to standard error.

    Args:
        comparison: the comparison of jobs.
        stream: the stream to print to.
    """
    vault = comparison.vault
    text = Printer(stream, vault)
    for side, content in (("old", comparison.old), ("new", comparison.new)):
        shown = ", ".join(f"{r.layer} {r.path} {r.digest()}" for r in content.roots)
        text.wrapped(f"{side}: {shown}", hang="  ")
    if comparison.shared:
        text.line()
        text.line("every job")
        for change in comparison.shared:
            _print_change(text, change, vault)
    for job in comparison.jobs:
        text.line()
        name = f"job {job.name} · {job.path}" if job.name else f"{job.path} is not valid"
        text.wrapped(name)
        printed: dict[str, str] = {}
        for name, role in job.roles.items():
            if not role.changes and not role.missing:
                continue
            first = printed.setdefault(json.dumps(_role(role, vault)), name)
            text.line(text.style(f"role {name}", "bold") + f": as role {first}" * (first != name))
            if first != name:
                continue
            if role.missing:
                side = "either side" if role.missing == "both" else f"the {role.missing} side"
                text.wrapped(f"it cannot be planned with {side}", "  ", "yellow")
            for change in role.changes:
                _print_change(text, change, vault)
        for side in ("old", "new"):
            if not (problems := job.problems[side]):
                continue
            refused = any(p.severity == "error" for p in problems)
            more = "; refused values are omitted above" if refused else ""
            text.line("  " + text.style(f"only with the {side} roots{more}", "bold"))
            for line in "\n".join(problem_text(p, vault, text.style) for p in problems).split("\n"):
                text.line(f"    {line}")
        text.line(_summary(job, comparison))
    stream.flush()
    for job in comparison.jobs:
        print_problems(job.problems["both"], vault)


def _print_change(text: Printer, change: Change, vault: Vault) -> None:
    old, new = (_lines(v, vault) for v in (change.old, change.new))
    now, was = (v.setter if v else "" for v in (change.new, change.old))
    who = f"  ← {now}" if now else ""
    if was and was != now:
        who += f", was {was}" if now else f", was set by {was}"
    if len(old) == len(new) == 1 and max(len(old[0]), len(new[0])) <= _SHORT:
        again = "another " if old == new else ""
        text.wrapped(f"{change.path}: {old[0]} → {again}{new[0]}{who}", "  ", hang="  ")
        return
    text.wrapped(f"{change.path}:{who}", "  ", hang="  ")
    for line in difflib.unified_diff(old, new, n=1, lineterm=""):
        if not line.startswith(("---", "+++", "@@")):
            color = {"+": "green", "-": "red"}.get(line[0], "dim")
            text.wrapped(f"{line[0]} {line[1:]}", "    ", color, "  ")


def _lines(value: Value | None, vault: Vault) -> list[str]:
    """A value as lines of text; secrets are masked before the split."""
    if value is None:
        return ["(none)"]
    if isinstance(value.value, Late):
        return vault.text(value.value.template).split("\n")
    shown = shown_data(value.value, vault)
    if isinstance(shown, str) and "\n" in shown:
        return shown.rstrip("\n").split("\n")
    text = json.dumps(shown, ensure_ascii=False)
    if len(text) > _SHORT and not isinstance(shown, str):
        return json.dumps(shown, ensure_ascii=False, indent=1).split("\n")
    return ["(none)" if shown is None else text]


def _summary(job: JobDiff, comparison: Comparison) -> str:
    counts = {"task added": 0, "task removed": 0, "value changed": 0}
    for role in job.roles.values():
        tasks = [c for c in role.changes if c.path.endswith(f".{TASK}")]
        added = tuple(c.path.removesuffix(TASK) for c in tasks if c.old is None)
        counts["task added"] += len(added)
        counts["task removed"] += sum(c.new is None for c in tasks)
        counts["value changed"] += sum(
            not c.path.startswith(added)
            for c in role.changes
            if c not in tasks or (c.old and c.new)
        )
    parts = [_counted(n, what) for what, n in counts.items() if n]
    for side in ("old", "new"):
        for severity in ("error", "warning"):
            if n := sum(p.severity == severity for p in job.problems[side]):
                parts.append(_counted(n, severity) + f" with the {side} roots only")  # noqa: PERF401
    parts += [f"role {n} cannot be compared" for n, r in job.roles.items() if r.missing]
    if all(r.missing for r in job.roles.values()):
        # An invalid job, or an unknown role, has no roles here.
        return ", ".join([*parts, "nothing was compared"])
    if comparison.shared:
        parts.append("what all jobs share changed")
    return ", ".join(parts) or "no difference"


def _counted(n: int, what: str) -> str:
    noun, _, rest = what.partition(" ")
    return f"{n} {noun}{'s' * (n != 1)} {rest}".rstrip()

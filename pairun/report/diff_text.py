"""The differences of jobs as text for people."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from typing import IO

from pairun.base.escapes import visible
from pairun.errors import Problem, render
from pairun.plan import Late
from pairun.playbook.content import Content
from pairun.report.diff_data import role_data
from pairun.report.problems import print_problems
from pairun.report.review_text import ReviewText
from pairun.report.shown import shown_data
from pairun.report.tint import Tint
from pairun.review.diff.compare import ProblemDiff, RoleDiff, TaskChange
from pairun.review.diff.diagnosisdiff import DiagnosisDiff
from pairun.review.diff.jobdiff import Comparison, JobDiff
from pairun.review.diff.values import DEFAULT, Value, ValueChange
from pairun.secrets.vault import Vault

_MARKS = {"added": ("+", "green"), "removed": ("-", "red"), "changed": ("~", "yellow")}
_SHORT = 60


def print_comparison(comparison: Comparison, stream: IO[str]) -> None:
    """Print the differences; problems of both sides go to standard error.

    Args:
        comparison: the comparison of jobs.
        stream: the stream to print to.
    """
    text = _DiffText(stream, comparison.vault)
    text.roots("old", comparison.old)
    text.roots("new", comparison.new)
    text.diagnosis(comparison.diagnosis)
    text.policy(comparison.policy)
    for diff in comparison.jobs:
        text.job(diff, comparison)
    stream.flush()
    for diff in comparison.jobs:
        print_problems(diff.problems.both, comparison.vault)


class _DiffText:
    """Prints differences.

    Args:
        stream: the stream to print to.
        vault: masks secrets.
    """

    def __init__(self, stream: IO[str], vault: Vault) -> None:
        self._stream = stream
        self._style = Tint(stream)
        self._vault = vault
        self._text = ReviewText(stream, vault)

    def roots(self, side: str, content: Content) -> None:
        """Print the roots of a side: layer, folder and digest of each."""
        shown = ", ".join(f"{r.layer} {r.path} {r.digest()}" for r in content.roots)
        self._text.wrapped(f"{side}: {shown}", hang="  ")

    def diagnosis(self, diff: DiagnosisDiff) -> None:
        """Print the differences in the diagnosis, which all jobs share."""
        if not diff.any:
            return
        self._text.line()
        self._text.line("diagnosis of every job")
        for klass, code in diff.exit_codes.items():
            old, new = ("none" if c is None else c for c in (code.old, code.new))
            changed = f"~ exit_codes.{klass}: {old} → {new}  ← {code.place}"
            self._text.wrapped(changed, "  ", "yellow", "  ")
        for file in diff.files:
            self._text.wrapped(f"~ rules of the diagnosis changed: {file}", "  ", "yellow", "  ")

    def policy(self, changed: Sequence[ValueChange]) -> None:
        """Print the differences in the policy, which all jobs share."""
        if not changed:
            return
        self._text.line()
        self._text.line("policy of every job")
        for change in changed:
            self._value(change, "  ")

    def job(self, job: JobDiff, comparison: Comparison) -> None:
        """Print all differences of one job."""
        text = self._text
        text.line()
        text.wrapped(
            f"{job.path} is not valid" if job.name is None else f"job {job.name} · {job.path}"
        )
        printed: dict[str, str] = {}
        for role, diff in job.roles.items():
            if not diff.any:
                continue
            first = printed.setdefault(json.dumps(role_data(diff, self._vault)), role)
            text.line(self._style(f"role {role}", "bold") + f": as role {first}" * (first != role))
            if first == role:
                self._role(diff)
        for side, side_problems in (("old", job.problems.old), ("new", job.problems.new)):
            refused = any(p.severity == "error" for p in side_problems)
            more = "; refused values are omitted above" if refused else ""
            self._problems(f"only with the {side} roots{more}", side_problems)
        text.line(_summary(job.roles, job.problems, comparison))

    def _role(self, diff: RoleDiff) -> None:
        if diff.missing:
            side = "either side" if diff.missing == "both" else f"the {diff.missing} side"
            self._text.wrapped(f"it cannot be planned with {side}", "  ", "yellow")
        for setting in diff.pod:
            self._value(setting, "  ")
        for phase, tasks in diff.tasks.items():
            if tasks or phase in diff.grace:
                self._text.line("  " + self._style(phase, "bold"))
            if phase in diff.grace:
                self._value(diff.grace[phase], "    ", "grace")
            for change in tasks:
                self._task(change)
        for name, (old, new) in diff.modules.items():
            where = "" if old[0] == new[0] else f": {old[0]} → {new[0]}"
            self._text.wrapped(f"~ module {name}: its code changed{where}", "  ", "yellow", "  ")
        for name in diff.plugins:
            self._text.wrapped(f"~ plugin {name}: its spec or program changed", "  ", "yellow")

    def _task(self, change: TaskChange) -> None:
        mark, color = _MARKS[change.kind]
        task = change.task
        head = f"{mark} {task.id}" + (
            f": {task.name}" if task.name and change.kind != "changed" else ""
        )
        self._text.wrapped(head, "    ", color, "  ")
        if change.because:
            self._text.wrapped(change.because, "        ", "dim", "  ")
        if change.old is None:
            self._text.wrapped(
                f"{task.module}, {task.layer}: {task.where}", "        ", "dim", "  "
            )
            for path, value in task.values.items():
                if value.setter != DEFAULT and path != ("name",):
                    self._new(".".join(path), value)
        if change.old is None or change.new is None:
            return
        if change.old.module != change.new.module:
            old, new = change.old, change.new
            changed = f"module: {old.module} → {new.module}  ← {new.layer} {new.where}"
            self._text.wrapped(f"{changed}, was {old.layer} {old.where}", "        ", hang="  ")
        if change.moved:
            was, now = (f"after {i}" if i else "the first" for i in change.moved)
            self._text.wrapped(f"moved: it is {now}, was {was}", "        ", hang="  ")
        for each in change.values:
            self._value(each, "        ")

    def _new(self, path: str, value: Value) -> None:
        lines = _lines(value, self._vault)
        shown = lines[0] if len(lines) == 1 else f"{len(lines)} lines"
        self._text.wrapped(f"{path}: {shown}", "        ", hang="  ")

    def _value(self, change: ValueChange, indent: str, name: str = "") -> None:
        old, new = (_lines(v, self._vault) for v in (change.old, change.new))
        now, was = (v.setter if v else "" for v in (change.new, change.old))
        who = f"  ← {now}" if now else ""
        if was and was != now:
            who += f", was {was}" if now else f", was set by {was}"
        path = name or change.path
        if len(old) == len(new) == 1 and max(len(old[0]), len(new[0])) <= _SHORT:
            if old == new:
                new = [f"another {new[0]}"]
            self._text.wrapped(f"{path}: {old[0]} → {new[0]}{who}", indent, hang="  ")
            return
        self._text.wrapped(f"{path}:{who}", indent, hang="  ")
        diff = difflib.unified_diff(old, new, n=1, lineterm="")
        for line in [d for d in diff if not d.startswith(("---", "+++", "@@"))]:
            color = {"+": "green", "-": "red"}.get(line[0], "dim")
            self._text.wrapped(f"{line[0]} {line[1:]}", indent + "  ", color, "  ")

    def _problems(self, title: str, problems: Sequence[Problem]) -> None:
        if problems:
            self._text.line("  " + self._style(title, "bold"))
        for p in problems:
            hint = visible(p.hint) if p.hint else None
            shown = render(p._replace(message=visible(p.message), hint=hint), self._style)
            for line in self._vault.text(shown).split("\n"):
                self._stream.write(f"    {line}\n")


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


def _summary(roles: Mapping[str, RoleDiff], problems: ProblemDiff, comparison: Comparison) -> str:
    changes = [c for r in roles.values() for tasks in r.tasks.values() for c in tasks]
    kinds = [c.kind for c in changes]
    counts = {
        "task added": kinds.count("added"),
        "task removed": kinds.count("removed"),
        "task moved": sum(c.moved is not None for c in changes),
        "value changed": sum(len(c.values) for c in changes)
        + sum(len(r.grace) + len(r.pod) for r in roles.values())
        + sum(c.old.module != c.new.module for c in changes if c.old and c.new),
        "module changed": len({n for r in roles.values() for n in r.modules}),
        "plugin changed": len({n for r in roles.values() for n in r.plugins}),
    }
    parts = [_counted(n, what) for what, n in counts.items() if n]
    for side, side_problems in (("old", problems.old), ("new", problems.new)):
        for severity in ("error", "warning"):
            if n := sum(p.severity == severity for p in side_problems):
                parts.append(_counted(n, severity) + f" with the {side} roots only")  # noqa: PERF401
    parts += [f"role {n} cannot be compared" for n, r in roles.items() if r.missing]
    if all(r.missing for r in roles.values()):
        # An invalid job, or an unknown role, has no roles here.
        return ", ".join([*parts, "nothing was compared"])
    if comparison.diagnosis.any:
        parts.append("the diagnosis changed")
    if comparison.policy:
        parts.append("the policy changed")
    return ", ".join(parts) or "no difference"


def _counted(n: int, what: str) -> str:
    noun, _, rest = what.partition(" ")
    return f"{n} {noun}{'s' * (n != 1)} {rest}".rstrip()

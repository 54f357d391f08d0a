"""The differences of a job as a person reads them, and as JSON."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

from pairun.errors import Problem, render
from pairun.plan import Late
from pairun.report.problems import problem_data
from pairun.report.review_text import ReviewText
from pairun.report.shown import shown_data
from pairun.report.terminal import Style, visible
from pairun.review.diff.compare import ProblemDiff, RoleDiff, TaskChange, TaskSide
from pairun.review.diff.values import DEFAULT, Value, ValueChange
from pairun.secrets.vault import Vault

_MARKS = {"added": ("+", "green"), "removed": ("-", "red"), "changed": ("~", "yellow")}
_SHORT = 60


class DiffText:
    """Prints differences.

    Args:
        stream: where to.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._style = Style(stream)
        self._vault = Vault()
        self._text = ReviewText(stream, self._vault)

    def roots(self, side: str, roots: Sequence[tuple[str, str, str]]) -> None:
        """Print what a side is made of: layer, folder and digest of each root."""
        self._text.wrapped(f"{side}: " + ", ".join(" ".join(r) for r in roots), hang="  ")

    def job(
        self,
        path: str,
        name: str | None,
        roles: Mapping[str, RoleDiff],
        problems: ProblemDiff,
        vault: Vault,
    ) -> None:
        """Print all that differs for one job."""
        self._vault = vault
        self._text = text = ReviewText(self._stream, vault)
        text.line()
        text.wrapped(f"{path} is not valid" if name is None else f"job {name} · {path}")
        seen: dict[str, str] = {}
        for role, diff in roles.items():
            if not diff.any:
                continue
            first = seen.setdefault(json.dumps(_role_data(diff, vault)), role)
            text.line(self._style(f"role {role}", "bold") + f": as role {first}" * (first != role))
            if first == role:
                self._role(diff)
        for side, found in (("old", problems.old), ("new", problems.new)):
            refused = any(p.severity == "error" for p in found)
            more = "; what is refused is left out above" if refused else ""
            self._problems(f"only with the {side} roots{more}", found)
        text.line(_summary(roles, problems))

    def _role(self, diff: RoleDiff) -> None:
        if diff.missing:
            side = "either side" if diff.missing == "both" else f"the {diff.missing} side"
            self._text.wrapped(f"it cannot be planned with {side}", "  ", "yellow")
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
            self._text.wrapped(f"~ plugin {name}: its spec changed", "  ", "yellow")

    def _task(self, change: TaskChange) -> None:
        mark, color = _MARKS[change.kind]
        task = change.task
        head = f"{mark} {task.id}" + (f": {task.name}" if change.kind != "changed" else "")
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
            said = f"module: {old.module} → {new.module}  ← {new.layer} {new.where}"
            self._text.wrapped(f"{said}, was {old.layer} {old.where}", "        ", hang="  ")
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
            shown = render(p._replace(message=visible(p.message), hint=hint), color=self._style.on)
            for line in self._vault.text(shown).split("\n"):
                self._stream.write(f"    {line}\n")


def _lines(value: Value | None, vault: Vault) -> list[str]:
    """A value as lines of text, masked as a whole before it is cut."""
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


def _summary(roles: Mapping[str, RoleDiff], problems: ProblemDiff) -> str:
    changes = [c for r in roles.values() for tasks in r.tasks.values() for c in tasks]
    kinds = [c.kind for c in changes]
    counts = {
        "task added": kinds.count("added"),
        "task removed": kinds.count("removed"),
        "task moved": sum(c.moved is not None for c in changes),
        "value changed": sum(len(c.values) for c in changes)
        + sum(len(r.grace) for r in roles.values())
        + sum(c.old.module != c.new.module for c in changes if c.old and c.new),
        "module changed": len({n for r in roles.values() for n in r.modules}),
        "plugin changed": len({n for r in roles.values() for n in r.plugins}),
    }
    parts = [_counted(n, what) for what, n in counts.items() if n]
    for side, found in (("old", problems.old), ("new", problems.new)):
        for severity in ("error", "warning"):
            if n := sum(p.severity == severity for p in found):
                parts.append(_counted(n, severity) + f" with the {side} roots only")  # noqa: PERF401
    parts += [f"role {n} cannot be compared" for n, r in roles.items() if r.missing]
    if all(r.missing for r in roles.values()):
        # Of a job that is not valid, or a role that it has not, there is no role here at all.
        return ", ".join([*parts, "nothing was compared"])
    return ", ".join(parts) or "no difference"


def _counted(n: int, what: str) -> str:
    noun, _, rest = what.partition(" ")
    return f"{n} {noun}{'s' * (n != 1)} {rest}".rstrip()


# --- plain data ----------------------------------------------------------------------------------


def document(roles: Mapping[str, RoleDiff], problems: ProblemDiff, vault: Vault) -> dict[str, Any]:
    """The differences of one job as plain data for JSON; secrets are masked."""
    return {
        "compared": not all(diff.missing for diff in roles.values()),
        "roles": {name: _role_data(diff, vault) for name, diff in roles.items()},
        "problems": {
            side: [problem_data(p, vault) for p in found]
            for side, found in (("old", problems.old), ("new", problems.new),
                                ("both", problems.both))
        },
    }  # fmt: skip


def _role_data(diff: RoleDiff, vault: Vault) -> dict[str, Any]:
    out: dict[str, Any] = {"cannot_be_planned": diff.missing} if diff.missing else {}
    for phase, tasks in diff.tasks.items():
        out[phase] = [_task_data(c, vault) for c in tasks]
    if diff.grace:
        out["grace"] = {
            p: {s: _value_data(v, vault) for s, v in (("old", c.old), ("new", c.new))}
            for p, c in diff.grace.items()
        }
    out["modules"] = {
        name: {s: {"where": where, "sha256": sha} for s, (where, sha) in zip(("old", "new"), both, strict=True)}
        for name, both in diff.modules.items()
    }  # fmt: skip
    out["plugins"] = list(diff.plugins)
    return out


def _task_data(change: TaskChange, vault: Vault) -> dict[str, Any]:
    out: dict[str, Any] = {"id": change.task.id, "change": change.kind}
    for side, task in (("old", change.old), ("new", change.new)):
        if task is not None:
            out[side] = _side_data(task, vault)
    if change.because:
        out["because"] = vault.text(change.because)
    if change.moved:
        out["moved"] = {"was_after": change.moved[0], "is_after": change.moved[1]}
    if change.old is None:
        told = {p: v for p, v in change.task.values.items() if v.setter != DEFAULT}
        out["values"] = [
            {"path": ".".join(p), "old": None, "new": _value_data(v, vault)}
            for p, v in told.items()
        ]
    elif change.new is not None:
        out["values"] = list(_values_data(change.values, vault))
    return out


def _side_data(task: TaskSide, vault: Vault) -> dict[str, str]:
    return {
        "name": vault.text(task.name),
        "module": task.module,
        "layer": task.layer,
        "where": task.where,
    }


def _values_data(values: Sequence[ValueChange], vault: Vault) -> Iterator[dict[str, Any]]:
    for v in values:
        yield {
            "path": v.path,
            "old": _value_data(v.old, vault),
            "new": _value_data(v.new, vault),
        }


def _value_data(value: Value | None, vault: Vault) -> dict[str, Any] | None:
    if value is None:
        return None
    return {"value": shown_data(value.value, vault), "by": value.setter}

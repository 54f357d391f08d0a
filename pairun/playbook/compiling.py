"""Compiles the effective playbook of a phase to a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

import pairun
from pairun.base.durations import parse_duration
from pairun.contract.arguments import arguments
from pairun.contract.kinds import shown
from pairun.errors import PairunError, Problems
from pairun.module import Module, Phase
from pairun.plan import (
    DEFAULT_DELAY_S,
    DEFAULT_GRACE_S,
    DEFAULT_RETRY_ON,
    EVENTS,
    USER_COMMAND,
    Event,
    Group,
    Late,
    Plan,
    Step,
    Task,
)
from pairun.playbook.content import Content
from pairun.playbook.document.checking import violations
from pairun.playbook.document.reading import Node
from pairun.playbook.drafts import Draft, GroupDraft, TaskDraft, draft_task
from pairun.playbook.effective import RESERVED, Effective
from pairun.playbook.expressions.template import is_template
from pairun.playbook.expressions.views import Unknown
from pairun.playbook.keywords import KEYWORDS
from pairun.playbook.taskchecks import check_arguments, check_bounds, check_effect, check_phase
from pairun.playbook.values import BROKEN, Broken, CompileInputs, PhaseScope, Values
from pairun.secrets.shapes import with_secrets

_MUST_BE_KNOWN = ("retries", "delay", "retry_on", "timeout", "deadline", "exit_codes")


def compile_phase(
    effective: Effective, phase: Phase, content: Content, inputs: CompileInputs, problems: Problems
) -> Plan:
    """Make the plan of one phase.

    Raises:
        PairunError: a module cannot be loaded; the other tasks are still checked.
    """
    return _Compiler(effective, phase, content, inputs, problems).plan()


class _Compiler:
    def __init__(
        self,
        effective: Effective,
        phase: Phase,
        content: Content,
        inputs: CompileInputs,
        problems: Problems,
    ) -> None:
        self._draft = effective.drafts[phase]
        self._policy = effective.policy
        self._content = content
        self._problems = problems
        # Values were checked when they were read: only after a problem can one have a wrong type.
        self._sound = not problems.errors
        self._modules: set[str] = set()
        self._unusable = Problems()
        ids = frozenset(t.id for t in self._draft.tasks() if not t.disabled)
        results = Unknown("the results of tasks before it", ids)
        self._scope = PhaseScope(phase, inputs, effective.policy, results, problems, {})

    def plan(self) -> Plan:
        draft = self._draft
        values = Values(self._scope, None)
        for name, node in draft.vars.items():
            self._scope.vars[name] = values.of(node)
        steps: list[Step] = []
        for step in draft.steps:
            if isinstance(step, GroupDraft):
                tasks = tuple(t for d in step.tasks if not d.disabled and (t := self._task(d)))
                if tasks:
                    steps.append(Group(name=step.name, tasks=tasks, where=str(step.place)))
            elif not step.disabled and (task := self._task(step)):
                steps.append(task)
        self._unusable.raise_errors()
        grace = values.of(draft.grace) if draft.grace else None
        grace_s = parse_duration(grace) if isinstance(grace, str) else None
        plan = Plan(
            phase=draft.phase,
            steps=tuple(steps),
            modules={n: self._content.module_file(n) for n in sorted(self._modules)},
            grace_s=DEFAULT_GRACE_S if grace_s is None else grace_s,
            pairun=pairun.__version__,
        )
        check_user_command(draft, plan, self._problems)
        return plan

    def _keywords(self, draft: TaskDraft) -> dict[str, Node]:
        """A task's keywords without values of a wrong type, which are already reported."""
        return {k: n for k, n in draft.node.items() if self._sound or _fits(k, n)}

    def _task(self, draft: TaskDraft) -> Task | None:
        try:
            cls = self._content.module(draft.module)
        except PairunError as e:
            self._unusable.extend(e.problems)
            return None
        self._modules.add(draft.module)
        check_phase(draft, cls, self._draft.phase, self._problems)
        keywords = self._keywords(draft)
        values = Values(self._scope, draft)
        self._add_vars(values, keywords.get("vars"))
        args = self._arguments(draft, cls, values)
        known = self._known(keywords, values)
        for name in [a.name for a in arguments(cls) if a.replaced_by and a.name in args]:
            attempts = self._deprecated(draft, name, args.pop(name))
            if "retries" not in keywords and attempts is not None:
                known["retries"] = attempts - 1
        task = Task(
            id=draft.id,
            name=values.sentence(keywords.get("name")),
            module=draft.module,
            args=args,
            when=values.condition(keywords.get("when")),
            environment=with_secrets(values.mapping(keywords.get("environment"))),
            failure_policy=_plain(keywords.get("failure_policy"), draft.failure_policy),
            run_on=_plain(keywords.get("run_on"), "all"),
            of_plugin=draft.origin == "plugin",
            where=str(draft.place),
            **known,
        )
        check_effect(draft, keywords, self._problems)
        handlers = self._handlers(draft, keywords.get("on_exit"))
        return attrs.evolve(task, on_exit=handlers) if handlers else task

    def _add_vars(self, values: Values, node: Node | None) -> None:
        for name, each in node.items() if node else ():
            if name in RESERVED:
                self._problems.error("PR213", f"'{name}' has a meaning in expressions", each.head)
            values.vars[name] = values.of(each)

    def _deprecated(self, draft: TaskDraft, name: str, attempts: Any) -> int | None:
        """Warn of an argument that counts attempts, replaced by ``retries``; return its value."""
        node = draft.args.get(name)
        place = node.head if node else None
        if isinstance(attempts, Late):
            message = f"'{name}' must be known before the run, and depends on {attempts.because}"
            self._problems.error("PR305", message, place)
            return None
        if not isinstance(attempts, int) or attempts < 1:
            self._problems.error("PR605", f"{draft.module}: '{name}' must be at least 1", place)
            return None
        hint = f"set the task's 'retries: {attempts - 1}' instead"
        self._problems.warning("PR214", f"{draft.module}: '{name}' is deprecated", place, hint)
        return attempts

    def _known(self, keywords: Mapping[str, Node], values: Values) -> dict[str, Any]:
        """The keywords that must be known before run time."""
        known: dict[str, Any] = {}
        for name in _MUST_BE_KNOWN:
            node = keywords.get(name)
            if node is None or node.value is None:
                continue
            value = values.of(node)
            if isinstance(value, Late):
                self._problems.error(
                    "PR305",
                    f"'{name}' must be known before the run, and depends on {value.because}",
                    node.place,
                )
            elif value is not BROKEN:
                known[name] = value
        retries = known.get("retries", 0)
        if not isinstance(retries, int) or isinstance(retries, bool) or retries < 0:
            message = f"'retries' must be a whole number, not {shown(retries)}"
            self._problems.error("PR204", message, keywords["retries"].place)
            retries = 0
        return {
            "retries": retries,
            "delay_s": self._seconds(known, keywords, "delay", DEFAULT_DELAY_S),
            "retry_on": tuple(known.get("retry_on", DEFAULT_RETRY_ON)),
            "timeout_s": self._seconds(known, keywords, "timeout", None),
            "deadline_s": self._seconds(known, keywords, "deadline", None),
            "exit_codes": {k: v for k, v in known.get("exit_codes", {}).items() if v is not None},
        }

    def _seconds(
        self,
        known: Mapping[str, Any],
        keywords: Mapping[str, Node],
        name: str,
        default: float | None,
    ) -> float | None:
        if name not in known:
            return default
        seconds = parse_duration(known[name]) if isinstance(known[name], str) else None
        # Written values were checked against the schema; values of expressions were not.
        if seconds is None and is_template(keywords[name].value):
            message = f"'{name}' must be a duration, not {shown(known[name])}"
            self._problems.error("PR210", message, keywords[name].place)
        return default if seconds is None else seconds

    def _arguments(self, draft: TaskDraft, cls: type[Module], values: Values) -> dict[str, Any]:
        declared = arguments(cls)
        # Mask plain-text secrets like those from an expression.
        may_hide = {a.name for a in declared if a.kind.may_be_secret}
        args = {
            name: with_secrets(value, name) if name in may_hide else value
            for name, value in ((name, values.of(node)) for name, node in draft.args.items())
        }
        leaves = {name: list(_leaves(value)) for name, value in args.items()}
        pending = frozenset(
            n for n, x in leaves.items() if any(isinstance(v, Late | Broken) for v in x)
        )
        check_arguments(draft, cls, args, pending, self._problems)
        check_bounds(draft, cls, args, self._policy, self._problems)
        if any(leaf is BROKEN for each in leaves.values() for leaf in each):
            return {}
        # null restores the default; arguments that allow null keep it
        required = {a.name for a in declared if a.required}
        return {k: v for k, v in args.items() if v is not None or k in required}

    def _handlers(self, draft: TaskDraft, node: Node | None) -> tuple[Task, ...]:
        handlers: list[Task] = []
        for n, entry in enumerate(node.elements() if node else (), 1):
            handler = draft_task(
                entry,
                self._content.modules,
                draft.origin,
                self._problems,
                scope=draft.scope,
                failure_policy=draft.handler_policy,
                used_at=draft.used_at,
                given=draft.given,
            )
            if handler is None:
                continue
            if "id" not in entry.value:
                handler.id = f"{draft.id}.on_exit" + (f"_{n}" if n > 1 else "")
            task = self._task(handler)
            keywords = self._keywords(handler)
            for name in ("on_exit", "parallel"):
                if (each := keywords.get(name)) is not None and each.value is not None:
                    self._problems.error("PR201", f"an exit handler has no '{name}'", each.head)
            # A handler that never runs would only clutter the review.
            if task is not None and task.when is not False:
                handlers.append(attrs.evolve(task, events=_events(keywords.get("event"))))
        return tuple(handlers)


def _plain(node: Node | None, default: Any) -> Any:
    return default if node is None or node.value is None else node.value


def _fits(keyword: str, node: Node) -> bool:
    if keyword not in KEYWORDS or node.value is None:
        return True
    return not any(violations(node, KEYWORDS[keyword].schema))


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _leaves(each)
    else:
        yield value


def _events(node: Node | None) -> tuple[Event, ...]:
    if node is None or node.value == "always":
        return EVENTS
    return tuple(n.value for n in node.elements()) if node.elements() else (node.value,)


def check_user_command(draft: Draft, plan: Plan, problems: Problems) -> None:
    """Report a command that is not the last task of its phase, or that never runs."""
    for n, step in enumerate(plan.steps):
        for task in step.tasks if isinstance(step, Group) else (step,):
            if task.module == USER_COMMAND and task is not plan.steps[-1]:
                after = attrs.evolve(plan, steps=plan.steps[n + 1 :])
                later = draft.find(next(after.tasks(), task).id)
                message = "user_command must be the last task of its phase"
                hint = "use on_exit for what must happen after the command"
                problems.error("PR208", message, later.place if later else None, hint)
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
    hint = "it is the last task of the runtime phase: user_command: {script: …}"
    problems.error(
        "PR205", "'user_command' is missing" + (": removed here" if commands else ""), place, hint
    )

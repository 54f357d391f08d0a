"""Compiles the effective playbook of a phase to a plan; renders templates as far as values are known."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

import pairun
from pairun.contract.arguments import arguments, may_be_secret
from pairun.contract.mistakes import argument_problems
from pairun.errors import PairunError, Place, Problems
from pairun.module import Phase, Secret, parse_duration
from pairun.plan import (
    DEFAULT_DELAY_S,
    DEFAULT_GRACE_S,
    DEFAULT_RETRY_ON,
    EVENTS,
    USER_COMMAND,
    Group,
    Late,
    Plan,
    Step,
    Task,
)
from pairun.playbook.content import Content
from pairun.playbook.document.checking import Ids, shown, violations
from pairun.playbook.document.reading import Node
from pairun.playbook.drafts import Draft, GroupDraft, TaskDraft, draft_task
from pairun.playbook.effective import RESERVED, Effective
from pairun.playbook.expressions.template import Scope, condition, is_template, render
from pairun.playbook.expressions.views import Unknown
from pairun.playbook.keywords import KEYWORDS
from pairun.playbook.policy import Policy
from pairun.secrets.forms import MASK
from pairun.secrets.shapes import with_secrets
from pairun.secrets.vault import Vault

_IDS = Ids("PR201", "PR204", "PR205")
_MUST_BE_KNOWN = ("retries", "delay", "retry_on", "timeout", "deadline", "exit_codes")


@attrs.frozen(kw_only=True)
class CompileInputs:
    """What expressions may see, as far as it is known.

    Attributes:
        job: the job and the role, plain data.
        parameters: the job's parameters.
        cluster: peers and ports, or `Unknown`.
        env: the environment of the phase, or `Unknown` or `Partial`.
        secrets: the job's own secrets, which only its own layer sees.
        vault: masks what secrets are made of.
        rewrite: replaces the shared volume's path in every text, for a run without namespaces.
    """

    job: Any
    parameters: Any
    cluster: Any
    env: Mapping[Phase, Any]
    vault: Vault
    secrets: Any = attrs.Factory(dict)
    rewrite: tuple[str, str] | None = None


def compile_phase(
    effective: Effective, phase: Phase, content: Content, facts: CompileInputs, problems: Problems
) -> Plan:
    """Make the plan of one phase.

    Args:
        effective: the playbooks after every layer.
        phase: which of them.
        content: the content roots.
        facts: what expressions may see.
        problems: takes everything that is wrong; the plan is not to be used when it has errors.
    """
    return _Compiler(effective.drafts[phase], effective.policy, content, facts, problems).plan()


class _Compiler:
    def __init__(
        self,
        draft: Draft,
        policy: Policy,
        content: Content,
        facts: CompileInputs,
        problems: Problems,
    ) -> None:
        self._draft = draft
        self._policy = policy
        self._content = content
        self._facts = facts
        self._problems = problems
        # Values were checked where they were read; only after a problem can one be of a wrong kind.
        self._sound = not problems.errors
        self._modules: set[str] = set()
        self._unusable = Problems()
        self._vars: dict[str, Any] = {}
        self._results = Unknown(
            "the results of tasks before it",
            frozenset(t.id for t in draft.tasks() if not t.disabled),
        )

    def plan(self) -> Plan:
        draft = self._draft
        for name, node in draft.vars.items():
            self._vars[name] = self._value(node, None, {})
        steps: list[Step] = []
        for step in draft.steps:
            if isinstance(step, GroupDraft):
                tasks = tuple(t for d in step.tasks if not d.disabled and (t := self._task(d)))
                if tasks:
                    steps.append(Group(name=step.name, tasks=tasks, where=str(step.place)))
            elif not step.disabled and (task := self._task(step)):
                steps.append(task)
        # Without its module a task cannot be shown either; the others were still checked.
        self._unusable.raise_errors()
        self._check_user_command(steps)
        grace = self._duration(draft.grace, None) if draft.grace else None
        return Plan(
            phase=draft.phase,
            steps=tuple(steps),
            modules={n: self._content.module_file(n) for n in sorted(self._modules)},
            grace_s=DEFAULT_GRACE_S if grace is None else grace,
            pairun=pairun.__version__,
        )

    def _check_user_command(self, steps: list[Step]) -> None:
        for i, step in enumerate(steps):
            tasks = step.tasks if isinstance(step, Group) else (step,)
            for task in tasks:
                last = i == len(steps) - 1 and not isinstance(step, Group)
                if task.module == USER_COMMAND and not last:
                    later = self._draft.find(next(_ids(steps[i + 1 :]), task.id))
                    self._problems.error(
                        "PR208",
                        "user_command must be the last task of its phase",
                        later.place if later else None,
                        "use on_exit for what must happen after the command",
                    )
        if self._draft.phase == "runtime":
            self._check_command_runs(steps)

    def _check_command_runs(self, steps: list[Step]) -> None:
        commands = [d for d in self._draft.tasks() if d.module == USER_COMMAND]
        never = {t.id for s in steps if isinstance(s, Task) for t in (s,) if t.when is False}
        if any(not d.disabled and d.id not in never for d in commands):
            return
        place = self._draft.place
        for d in commands:
            when = d.node.get("when")
            place = d.disabled or (when.place if when else place)
        self._problems.error(
            "PR205",
            "'user_command' is missing" + (": here it is taken out" if commands else ""),
            place,
            "it is the last task of the runtime phase: user_command: {script: …}",
        )

    # --- scopes ---

    def _scope(self, node: Node, draft: TaskDraft | None, local: Mapping[str, Any]) -> Scope:
        """What the expressions of a value may see depends on the layer that wrote it."""
        facts = self._facts
        names: dict[str, Any] = {
            "job": facts.job,
            "parameters": facts.parameters,
            "cluster": facts.cluster,
            "results": self._results,
        }
        if node.place.source.layer == "job":
            names |= {n: v for n, v in self._vars.items() if self._policy.may_set(n)[0]}
            names["secrets"] = facts.secrets
            return Scope({**names, **local}, statements=False)
        names |= {"env": facts.env[self._draft.phase], **self._vars}
        return Scope({**names, **(draft.scope if draft else {}), **local})

    def _value(self, node: Node, draft: TaskDraft | None, local: Mapping[str, Any]) -> Any:
        """A value with its expressions resolved; what fails is reported and becomes None."""
        if isinstance(node.value, dict):
            return {k: self._value(v, draft, local) for k, v in node.items()}
        if isinstance(node.value, list):
            return [self._value(v, draft, local) for v in node.elements()]
        if not is_template(node.value):
            return self._rewritten(node.value)
        try:
            return self._rewritten(render(node.value, node.place, self._scope(node, draft, local)))
        except PairunError as e:
            self._problems.extend(p._replace(also=_used_at(draft, p.place)) for p in e.problems)
            return _Broken

    def _rewritten(self, value: Any) -> Any:
        if self._facts.rewrite is None:
            return value
        old, new = self._facts.rewrite
        if isinstance(value, str):
            return value.replace(old, new)
        if isinstance(value, dict):
            return {k: self._rewritten(v) for k, v in value.items()}
        return [self._rewritten(v) for v in value] if isinstance(value, list) else value

    # --- tasks ---

    def _keywords(self, draft: TaskDraft) -> Mapping[str, Node]:
        """What a task says, without values of a wrong kind, which were reported."""
        return {k: n for k, n in draft.node.items() if self._sound or _fits(k, n)}

    def _task(self, draft: TaskDraft, handler_of: Task | None = None) -> Task | None:
        where = self._keywords(draft)
        try:
            cls = self._content.module(draft.module)
        except PairunError as e:
            self._unusable.extend(e.problems)
            return None
        self._modules.add(draft.module)
        if self._draft.phase not in cls.phases:
            self._problems.error(
                "PR212",
                f"the module '{draft.module}' does not run in {self._draft.phase}",
                draft.args.key or draft.args.place,
                f"it runs in {' and '.join(cls.phases)}",
            )
        local: dict[str, Any] = {}
        for name, node in (where.get("vars") or Node({}, draft.place)).items():
            if name in RESERVED:
                self._problems.error(
                    "PR213", f"'{name}' has a meaning in expressions", node.key or node.place
                )
            local[name] = self._value(node, draft, local)
        args = self._arguments(draft, local)
        known = self._known(where, draft, local)
        for name in [a.name for a in arguments(cls) if a.replaced_by and a.name in args]:
            attempts = self._deprecated(draft, name, args.pop(name))
            if "retries" not in where and attempts is not None:
                known["retries"] = attempts - 1
        task = Task(
            id=draft.id,
            name=self._sentence(where.get("name"), draft, local),
            module=draft.module,
            args=args,
            when=self._when(where.get("when"), draft, local),
            environment=with_secrets(self._mapping(where.get("environment"), draft, local)),
            failure_policy=self._plain(where.get("failure_policy"), draft.failure_policy),
            run_on=self._plain(where.get("run_on"), "all"),
            of_plugin=draft.origin == "plugin",
            where=str(draft.place),
            **known,
        )
        self._check_effect(draft, handler_of)
        handlers = self._handlers(draft, task)
        return attrs.evolve(task, on_exit=handlers) if handlers else task

    def _deprecated(self, draft: TaskDraft, name: str, attempts: Any) -> int | None:
        """Warn of an argument that counts attempts, which ``retries`` does now; the attempts."""
        node = draft.args.get(name)
        place = (node.key or node.place) if node else None
        if isinstance(attempts, Late):
            self._problems.error(
                "PR305",
                f"'{name}' must be known before the run, and depends on {attempts.because}",
                place,
            )
            return None
        if not isinstance(attempts, int) or attempts < 1:
            self._problems.error("PR605", f"{draft.module}: '{name}' must be at least 1", place)
            return None
        self._problems.warning(
            "PR214",
            f"{draft.module}: '{name}' is deprecated",
            place,
            f"set the task's 'retries: {attempts - 1}' instead",
        )
        return attempts

    def _sentence(self, node: Node | None, draft: TaskDraft, local: Mapping[str, Any]) -> str:
        """A task's name; what is not known of it yet stays as it was written."""
        if node is None or node.value is None:
            return ""
        value = self._value(node, draft, local)
        if isinstance(value, Secret):
            return self._public(node, draft, local)
        return str(node.value if isinstance(value, Late) else value)

    def _public(self, node: Node, draft: TaskDraft, local: Mapping[str, Any]) -> str:
        """A name that secrets go into, made anew of what may be shown of them."""
        scope = self._scope(node, draft, local)
        names = {n: self._shown(v) for n, v in scope.names.items()}
        try:
            made = render(node.value, node.place, Scope(names, scope.statements))
        except PairunError:
            return MASK  # what is masked need not fit where the secret did
        return MASK if isinstance(made, Late) else str(made)

    def _shown(self, value: Any) -> Any:
        if isinstance(value, Secret):
            text = self._facts.vault.text(value.reveal())
            return text if text != value.reveal() else str(value)
        if isinstance(value, dict):
            return {k: self._shown(v) for k, v in value.items()}
        return [self._shown(v) for v in value] if isinstance(value, list) else value

    def _mapping(
        self, node: Node | None, draft: TaskDraft, local: Mapping[str, Any]
    ) -> dict[str, Any]:
        """A mapping without the entries that a higher layer set back."""
        made = {} if node is None else self._value(node, draft, local)
        return {k: v for k, v in (made or {}).items() if v is not None}

    def _known(
        self, where: Mapping[str, Node], draft: TaskDraft, local: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The keywords that must be known before the run."""
        values: dict[str, Any] = {}
        for name in _MUST_BE_KNOWN:
            node = where.get(name)
            if node is None or node.value is None:
                continue
            value = self._value(node, draft, local)
            if isinstance(value, Late):
                self._problems.error(
                    "PR305",
                    f"'{name}' must be known before the run, and depends on {value.because}",
                    node.place,
                )
            elif value is not _Broken:
                values[name] = value
        retries = values.get("retries", 0)
        if not isinstance(retries, int) or isinstance(retries, bool) or retries < 0:
            self._problems.error(
                "PR204",
                f"'retries' must be a whole number, not {shown(retries)}",
                where["retries"].place,
            )
            retries = 0
        return {
            "retries": retries,
            "delay_s": self._seconds(values, where, "delay", DEFAULT_DELAY_S),
            "retry_on": tuple(values.get("retry_on", DEFAULT_RETRY_ON)),
            "timeout_s": self._seconds(values, where, "timeout", None),
            "deadline_s": self._seconds(values, where, "deadline", None),
            "exit_codes": {k: v for k, v in values.get("exit_codes", {}).items() if v is not None},
        }

    def _seconds(
        self, values: Mapping[str, Any], where: Mapping[str, Node], name: str, default: float | None
    ) -> float | None:
        if name not in values:
            return default
        value = values[name]
        seconds = parse_duration(value) if isinstance(value, str) else None
        if seconds is None:
            # Written values were checked against the schema; this one came from an expression.
            if is_template(where[name].value):
                self._problems.error(
                    "PR210", f"'{name}' must be a duration, not {shown(value)}", where[name].place
                )
            return default
        return seconds

    def _duration(self, node: Node, draft: TaskDraft | None) -> float | None:
        value = self._value(node, draft, {})
        return parse_duration(value) if isinstance(value, str) else None

    @staticmethod
    def _plain(node: Node | None, default: Any) -> Any:
        return default if node is None or node.value is None else node.value

    def _when(self, node: Node | None, draft: TaskDraft, local: Mapping[str, Any]) -> bool | Late:
        if node is None or node.value is None:
            return True
        if isinstance(node.value, bool):
            return node.value
        try:
            return condition(str(node.value), node.place, self._scope(node, draft, local))
        except PairunError as e:
            self._problems.extend(p._replace(also=_used_at(draft, p.place)) for p in e.problems)
            return False

    def _arguments(self, draft: TaskDraft, local: Mapping[str, Any]) -> dict[str, Any]:
        cls = self._content.module(draft.module)
        node = draft.args
        values = {k: self._value(v, draft, local) for k, v in node.items()}
        # What is written out stands apart as what an expression gives does.
        takes = {a.name for a in arguments(cls) if may_be_secret(a.type)}
        values = {k: with_secrets(v, k) if k in takes else v for k, v in values.items()}
        broken = any(v is _Broken for v in _leaves(values))
        pending = frozenset(k for k, v in values.items() if any(_unready(x) for x in _leaves(v)))
        for p in argument_problems(cls, values, pending):
            at = node.at(p.path) or node
            place = at.key or at.place if p.id in ("PR604", "PR606") else at.place
            also = _used_at(draft, place, at)
            self._problems.error(p.id, f"{draft.module}: {p.message}", place, p.hint, also)
        if broken:
            return {}
        # null returns to the default; arguments that may be null keep it
        required = {a.name for a in arguments(cls) if a.required}
        return {k: v for k, v in values.items() if v is not None or k in required}

    def _handlers(self, draft: TaskDraft, task: Task) -> tuple[Task, ...]:
        node = self._keywords(draft).get("on_exit")
        if node is None or node.value is None:
            return ()
        handlers: list[Task] = []
        for n, entry in enumerate(node.elements(), 1):
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
            made = self._task(handler, task)
            # A handler whose condition is known to be false would only be noise in the review.
            if made is not None and made.when is not False:
                handlers.append(
                    attrs.evolve(made, events=_events(self._keywords(handler).get("event")))
                )
        return tuple(handlers)

    def _check_effect(self, draft: TaskDraft, handler_of: Task | None) -> None:
        """A combination that has no effect is an error, where one layer wrote both halves."""
        where = self._keywords(draft)

        def written(name: str) -> Node | None:
            node = where.get(name)
            return node if node is not None and node.value is not None else None

        retries = written("retries")
        # One of a wrong kind was reported, and is no reason to complain of what needs it.
        misread = "retries" not in where and draft.node.get("retries") is not None
        for name in ("delay", "retry_on"):
            node = written(name)
            if (
                node
                and not misread
                and (retries is None or retries.value == 0)
                and _same_text(node, retries)
            ):
                self._problems.error(
                    "PR207",
                    f"'{name}' has no effect without retries",
                    node.key or node.place,
                    "add retries, or remove it",
                )
        policy, codes = written("failure_policy"), written("exit_codes")
        ignored = self._plain(policy, draft.failure_policy) == "ignore"
        if codes and ignored and _same_text(codes, policy):
            self._problems.error(
                "PR207",
                "'exit_codes' has no effect: a failure of this task is ignored",
                codes.key or codes.place,
                "remove it, or set failure_policy: fail",
            )
        timeout, deadline = written("timeout"), written("deadline")
        if timeout and deadline and _same_text(timeout, deadline):
            limits = [parse_duration(str(n.value)) for n in (timeout, deadline)]
            if None not in limits and limits[0] > limits[1]:  # type: ignore[operator]
                self._problems.error(
                    "PR207",
                    "'timeout' has no effect: the deadline of the whole task is shorter",
                    timeout.key or timeout.place,
                )
        if handler_of is not None:
            for name in ("on_exit", "parallel"):
                if (node := written(name)) is not None:
                    self._problems.error(
                        "PR201", f"an exit handler has no '{name}'", node.key or node.place
                    )


class _BrokenValue(str):
    """Stands for a value that could not be rendered and was reported."""

    __slots__ = ()


_Broken = _BrokenValue("(not valid)")


def _used_at(
    draft: TaskDraft | None, place: Place | None, value: Node | None = None
) -> tuple[tuple[str, Place], ...]:
    """Of a problem in a plugin's spec the job's line: the value came from its parameters."""
    if draft is None or draft.used_at is None or (place and place.source.layer == "job"):
        return ()
    # `{{ parameters.x }}` and nothing else: what is wrong stands there.
    whole = re.fullmatch(r"\{\{ *parameters\.(\w+) *\}\}", str(value.value) if value else "")
    given = draft.given.get(whole[1]) if whole and draft.given else None
    if given is not None:
        return (("it is given here", given.place),)
    return (("the plugin is used here", draft.used_at),)


def _fits(keyword: str, node: Node) -> bool:
    if keyword not in KEYWORDS or node.value is None:
        return True
    return not any(violations(node, KEYWORDS[keyword].schema, _IDS))


def _unready(value: object) -> bool:
    return isinstance(value, Late | _BrokenValue)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for v in value.values():
            yield from _leaves(v)
    elif isinstance(value, list):
        for v in value:
            yield from _leaves(v)
    else:
        yield value


def _ids(steps: list[Step]) -> Iterator[str]:
    for step in steps:
        yield from (t.id for t in (step.tasks if isinstance(step, Group) else (step,)))


def _events(node: Node | None) -> tuple[Any, ...]:
    if node is None or node.value == "always":
        return EVENTS
    return tuple(n.value for n in node.elements()) if node.elements() else (node.value,)


def _same_text(one: Node, other: Node | None) -> bool:
    return other is None or one.place.source is other.place.source

"""Resolves the expressions in a playbook's values, as far as their names are known."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from pairun.errors import PairunError, Place, Problems
from pairun.module import Phase, Secret
from pairun.plan import Late
from pairun.playbook.document.reading import Node
from pairun.playbook.drafts import TaskDraft
from pairun.playbook.expressions.template import Scope, condition, is_template, render
from pairun.playbook.expressions.views import Unknown
from pairun.playbook.policy import Policy
from pairun.secrets.forms import MASK
from pairun.secrets.vault import Vault


class CompileInputs(NamedTuple):
    """The data that expressions can use, as far as it is known.

    Attributes:
        job: the job and the role, plain data.
        cluster: peers and ports, or `Unknown`.
        env: the environment of the phase, or `Unknown` or `Partial`.
        secrets: the job's own secrets, visible only to the job's layer.
        vault: masks the values derived from secrets.
        rewrite: replaces the shared volume's path in every text, for a run without namespaces.
    """

    job: Any
    parameters: Any
    cluster: Any
    env: Mapping[Phase, Any]
    vault: Vault
    secrets: Any
    rewrite: tuple[str, str] | None = None


class PhaseScope(NamedTuple):
    """What all expressions of one phase share.

    Attributes:
        policy: which variables a job may set.
        results: the tasks' results, known only at run time.
        vars: the playbook's variables, once resolved.
    """

    phase: Phase
    inputs: CompileInputs
    policy: Policy
    results: Unknown
    problems: Problems
    vars: dict[str, Any]


class Broken(str):
    """A placeholder for a value that could not be resolved and is already reported."""

    __slots__ = ()


BROKEN = Broken("(not valid)")


class Values:
    """Resolves the values of one task, or of the playbook itself.

    Attributes:
        vars: the task's own variables.
    """

    def __init__(self, scope: PhaseScope, draft: TaskDraft | None) -> None:
        self.vars: dict[str, Any] = {}
        self._scope = scope
        self._draft = draft

    def of(self, node: Node) -> Any:
        """A value with its expressions resolved; an error is reported and gives `BROKEN`."""
        if isinstance(node.value, dict):
            return {k: self.of(v) for k, v in node.items()}
        if isinstance(node.value, list):
            return [self.of(v) for v in node.elements()]
        if not is_template(node.value):
            return self._rewritten(node.value)
        try:
            return self._rewritten(render(node.value, node.place, self._visible_to(node)))
        except PairunError as e:
            self._report(e)
            return BROKEN

    def condition(self, node: Node | None) -> bool | Late:
        """The value of a ``when``; an error is reported, and the value is false."""
        if node is None or node.value is None:
            return True
        if isinstance(node.value, bool):
            return node.value
        try:
            return condition(str(node.value), node.place, self._visible_to(node))
        except PairunError as e:
            self._report(e)
            return False

    def mapping(self, node: Node | None) -> dict[str, Any]:
        """A mapping without the entries that a higher layer resets to their defaults."""
        values = {} if node is None else self.of(node)
        return {k: v for k, v in (values or {}).items() if v is not None}

    def sentence(self, node: Node | None) -> str | Late:
        """A task's name: secrets are masked; late if it depends on what is known at run time."""
        if node is None or node.value is None:
            return ""
        value = self.of(node)
        if not isinstance(value, Secret):
            return value if isinstance(value, Late) else str(value)
        scope = self._visible_to(node)
        names = {name: self._public(visible) for name, visible in scope.names.items()}
        try:
            public = render(node.value, node.place, Scope(names, scope.statements))
        except PairunError:
            return MASK  # a mask may not fit where the secret did
        return MASK if isinstance(public, Late) else str(public)

    def _public(self, value: Any) -> Any:
        """A value of the scope with its secrets masked."""
        if isinstance(value, Secret):
            text = self._scope.inputs.vault.text(value.reveal())
            return text if text != value.reveal() else str(value)
        if isinstance(value, dict):
            return {k: self._public(v) for k, v in value.items()}
        return [self._public(v) for v in value] if isinstance(value, list) else value

    def _visible_to(self, node: Node) -> Scope:
        """The names that a value's expressions can use; the layer that wrote it decides."""
        scope, inputs = self._scope, self._scope.inputs
        names: dict[str, Any] = {
            "job": inputs.job,
            "parameters": inputs.parameters,
            "cluster": inputs.cluster,
            "results": scope.results,
        }
        if node.place.source.layer == "job":
            names |= {n: v for n, v in scope.vars.items() if scope.policy.may_set(n).allowed}
            names["secrets"] = inputs.secrets
            return Scope({**names, **self.vars}, statements=False)
        own = self._draft.scope if self._draft else {}
        return Scope({**names, "env": inputs.env[scope.phase], **scope.vars, **own, **self.vars})

    def _rewritten(self, value: Any) -> Any:
        rewrite = self._scope.inputs.rewrite
        if rewrite is None:
            return value
        if isinstance(value, str):
            return value.replace(*rewrite)
        if isinstance(value, dict):
            return {k: self._rewritten(v) for k, v in value.items()}
        return [self._rewritten(v) for v in value] if isinstance(value, list) else value

    def _report(self, error: PairunError) -> None:
        self._scope.problems.extend(
            p._replace(also=used_at(self._draft, p.place)) for p in error.problems
        )


def used_at(
    draft: TaskDraft | None, place: Place | None, value: Node | None = None
) -> tuple[tuple[str, Place], ...]:
    """The job's line that gave the value or uses the plugin, for a problem in a plugin's spec."""
    if draft is None or draft.used_at is None or (place and place.source.layer == "job"):
        return ()
    # Only `{{ parameters.x }}`: the mistake is in the parameter's value.
    whole = re.fullmatch(r"\{\{ *parameters\.(\w+) *\}\}", str(value.value) if value else "")
    given = draft.given.get(whole[1]) if whole and draft.given else None
    if given is not None and given.place.source.layer == "job":
        return (("it is given here", given.place),)
    return (("the plugin is used here", draft.used_at),)

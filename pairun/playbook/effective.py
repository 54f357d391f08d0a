"""The effective playbooks of a role: built-in, cluster, plugins, engine, job, in that order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pairun.errors import PairunError, Place, Problems
from pairun.module import Phase, Secret
from pairun.playbook.content import Content
from pairun.playbook.document.checking import KEYWORD_FORMAT, violations
from pairun.playbook.document.reading import Node, elements, entries
from pairun.playbook.drafts import Draft, GroupDraft, PluginUse, TaskDraft, draft_task, merged
from pairun.playbook.initplugins import InitPlugins, replace_tasks
from pairun.playbook.keywords import playbook_schema
from pairun.playbook.patches import Patcher, phase_hints
from pairun.playbook.pluginfolders import folder_plugins
from pairun.playbook.podschema import POD_SCHEMA, pod_definitions, pod_mistakes
from pairun.playbook.policy import Policy, read_policy
from pairun.playbook.specs import PHASES, add_plugins, check_spec

RESERVED = frozenset(
    {"job", "parameters", "cluster", "env", "results", "secrets", "plugin", "user_extension", "expanded", "vars",
     "true", "false", "none", "range"}
)  # fmt: skip
"""Names with a meaning in expressions; a variable may not use them."""
NAMES = RESERVED - {"secrets", "vars"}
"""The names that expressions of the cluster's files find, besides variables."""


class Effective(NamedTuple):
    """The playbooks of a role after every layer."""

    drafts: Mapping[Phase, Draft]
    policy: Policy


class Layers:
    """Everything below the job: read and checked once, then used for every role.

    Args:
        root_problems: takes the roots' errors instead of an exception; such layers are only for
            finding more problems, not for making plans.

    Attributes:
        folders: the plugins that are folders with a program.
        warnings: unused or misspelt plugins of the roots; every review shows them.

    Raises:
        PairunError: a playbook, policy or plugin spec of a root is invalid.
    """

    def __init__(self, content: Content, root_problems: Problems | None = None) -> None:
        self.content = content
        self._schema = playbook_schema({name: {} for name in content.modules})
        problems = Problems() if root_problems is None else root_problems
        self.policy = read_policy(content.playbooks("policy", problems), problems)
        self.folders = folder_plugins(content, self.policy)
        plugins = {*content.specs, *self.folders.folders}
        # A typo in the deny list leaves a plugin allowed; the built-in policy has none.
        not_denied = self.policy.unknown_plugins(plugins, "deny")
        self.warnings = (*self.folders.unused, *not_denied)
        self._playbooks = {phase: content.playbooks(phase, problems) for phase in PHASES}
        for phase, documents in self._playbooks.items():
            for document in documents:
                self.check(document, problems, phase)
        self._spec_problems: dict[str, Problems] = {}
        if root_problems is None:
            problems.raise_errors()

    def check(self, document: Node, problems: Problems, phase: str | None = None) -> None:
        """Check a playbook document against the format.

        Args:
            phase: the phase in its file's name.
        """
        problems.extend(violations(document, self._schema, KEYWORD_FORMAT))
        tasks, patches = document.get("tasks"), document.get("patches")
        if tasks is None and patches is None:
            as_in_a_job = next((p for p in PHASES if document.get(p) is not None), None)
            hint = (
                f"'{as_in_a_job}:' is the form of a job; write 'phase: {as_in_a_job}', "
                "and the list below 'patches:'"
                if as_in_a_job
                else None
            )
            problems.error("PR205", "a playbook has 'tasks' or 'patches'", document.place, hint)
        elif tasks is not None and patches is not None:
            message = (
                "a playbook has 'tasks' or 'patches', not both: 'tasks' replaces the playbook "
                "of a lower layer, 'patches' changes it"
            )
            problems.error("PR207", message, patches.head, also=[("the tasks", tasks.head)])
        declared = document.get("phase")
        if phase and declared is not None and declared.value in PHASES and declared.value != phase:
            message = f"'phase' must be {phase} in a file of that name, not {declared.value}"
            problems.error("PR204", message, declared.place)

    def names(self) -> frozenset[str]:
        """The names that expressions of the cluster's files find: those of pairun, and variables."""
        documents = (d for playbooks in self._playbooks.values() for d in playbooks)
        return NAMES.union(name for d in documents for name, _ in entries(d, "vars"))

    def effective(
        self,
        uses: Sequence[PluginUse],
        *,
        init_plugins: InitPlugins | None = None,
        engine: Node | None = None,
        job: Node | None = None,
        user_extension: Any = None,
        written: Mapping[str, str | Secret] | None = None,
        problems: Problems,
    ) -> Effective:
        """Apply all layers.

        Args:
            uses: the plugins of the role, in order of collection.
            init_plugins: the cluster's list that replaces the init playbook's tasks.
            engine: operations of the engine, in the form of a job's ``extras.pairun``.
            job: the job's ``extras.pairun``.
            user_extension: the value of that name in plugin specs.
            written: the scripts that programs of plugin folders wrote; None before they run.
        """
        problems.extend(self.warnings)
        drafts = {phase: self._base(phase, problems) for phase in PHASES}
        if init_plugins is not None:
            replace_tasks(drafts["init"], init_plugins, self.content.modules, problems)
        is_sound = {p: self._spec_is_sound(p, problems) for p in {u.plugin: None for u in uses}}
        sound = [u for u in uses if is_sound[u.plugin]]
        for draft in drafts.values():
            draft.left_out |= {u.base_id for u in uses if not is_sound[u.plugin]}
        add_plugins(
            drafts,
            self.content,
            self.folders,
            sound,
            self.policy,
            user_extension,
            written,
            problems,
        )
        used = {u.plugin for u in uses}
        unused = {p for p in (*self.content.specs, *self.folders.folders) if p not in used}
        for layer, node in (("engine", engine), ("job", job)):
            if node is not None:
                self._apply_layer(drafts, layer, node, unused, problems)
        _check_ids(drafts, problems)
        return Effective(drafts=drafts, policy=self.policy)

    def _spec_is_sound(self, plugin: str, problems: Problems) -> bool:
        """Check a plugin's spec on first use; one with errors adds no tasks."""
        if plugin not in self.content.specs or plugin in self.folders.folders:
            return True  # the use itself is reported
        if plugin not in self._spec_problems:
            spec_problems = self._spec_problems[plugin] = Problems()
            try:
                check_spec(
                    self.content.document(*self.content.specs[plugin]), self.content, spec_problems
                )
            except PairunError as e:
                spec_problems.extend(e.problems)
        problems.extend(self._spec_problems[plugin])
        return not self._spec_problems[plugin].errors

    def _base(self, phase: Phase, problems: Problems) -> Draft:
        draft = Draft(phase=phase)
        for document in self._playbooks[phase]:
            origin = document.place.source.layer
            if (tasks := document.get("tasks")) is not None:
                draft.steps = self._steps(tasks, origin, problems)
                draft.vars, draft.grace = {}, None
                draft.place = tasks.head
            for name, node in entries(document, "vars"):
                draft.vars[name] = merged(draft.vars.get(name), node)
                if name in RESERVED:
                    problems.error("PR213", f"'{name}' has a meaning in expressions", node.head)
            if (grace := document.get("grace")) is not None:
                draft.grace = merged(draft.grace, grace)
            if (patches := document.get("patches")) is not None:
                hints = self._layer_hints(phase)
                Patcher(draft, self.content.modules, origin, None, problems, hints).apply(patches)
        return draft

    def _layer_hints(self, phase: Phase) -> dict[str, str]:
        """Hints for the patches of a playbook that name a plugin, or a task of the other phase."""
        plugins = {*self.content.specs, *self.folders.folders}
        hint = "it is a plugin: a job patches its tasks in extras.pairun"
        other: Phase = "runtime" if phase == "init" else "init"
        tasks = (t for d in self._playbooks[other] for t in elements(d, "tasks"))
        ids = (str(id_.value) for t in tasks if (id_ := t.get("id")) is not None)
        return {**dict.fromkeys(plugins, hint), **phase_hints(ids, other)}

    def _steps(self, tasks: Node, origin: str, problems: Problems) -> list[TaskDraft | GroupDraft]:
        steps: list[TaskDraft | GroupDraft] = []
        modules = self.content.modules
        for node in tasks.elements():
            if (name := node.get("parallel")) is not None:
                inner = (draft_task(n, modules, origin, problems) for n in elements(node, "tasks"))
                group = [task for task in inner if task]
                steps.append(GroupDraft(name=str(name.value), tasks=group, place=node.place))
            elif task := draft_task(node, modules, origin, problems):
                steps.append(task)
        return steps

    def _apply_layer(
        self,
        drafts: Mapping[Phase, Draft],
        layer: str,
        node: Node,
        unused: Iterable[str],
        problems: Problems,
    ) -> None:
        policy = self.policy if layer == "job" else None
        before = len(problems.errors)
        schema = layer_schema({name: {} for name in self.content.modules})
        schema["properties"]["pod"] = {"type": "object"}
        problems.extend(violations(node, schema, KEYWORD_FORMAT, whole="extras.pairun"))
        if (pod := node.get("pod")) is not None and isinstance(pod.value, dict):
            problems.extend(pod_mistakes(pod))
        if len(problems.errors) > before and not isinstance(node.value, dict):
            return
        for name, value in entries(node, "vars"):
            what, place = f"set the variable '{name}'", value.head
            if policy is None or policy.may_set(name).granted(problems, what, place):
                for draft in drafts.values():
                    draft.vars[name] = merged(draft.vars.get(name), value)
        for phase in PHASES:
            if (operations := node.get(phase)) is None:
                continue
            other: Phase = "runtime" if phase == "init" else "init"
            elsewhere = {
                **{plugin: f"the role does not use the plugin '{plugin}'" for plugin in unused},
                **phase_hints((t.id for t in drafts[other].tasks()), other),
            }
            Patcher(drafts[phase], self.content.modules, layer, policy, problems, elsewhere).apply(
                operations
            )


def layer_schema(modules: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of ``extras.pairun``; ``modules`` as for `playbook_schema`."""
    base = playbook_schema(modules)
    operations = {"type": "array", "items": {"$ref": "#/$defs/operation"}}
    return {
        "$schema": base["$schema"],
        "title": "extras.pairun of a job",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "vars": {"type": "object"},
            "init": operations,
            "runtime": operations,
            "pod": POD_SCHEMA,
        },
        "$defs": {**base["$defs"], **pod_definitions()},
    }


def _check_ids(drafts: Mapping[Phase, Draft], problems: Problems) -> None:
    seen: dict[str, Place] = {}
    for draft in drafts.values():
        for task in draft.tasks():
            if task.disabled:
                continue
            for id_, place in _ids_of(task):
                if (first := seen.setdefault(id_, place)) is not place:
                    message = f"the id '{id_}' is used twice"
                    hint = "give the task another id"
                    problems.error("PR206", message, place, hint, also=[("first used here", first)])


def _ids_of(task: TaskDraft) -> Iterator[tuple[str, Place]]:
    """The id of a task, and the explicit ids of its exit handlers."""
    yield task.id, task.place
    for handler in elements(task.node, "on_exit"):
        if (given := handler.get("id")) is not None:
            yield str(given.value), given.place

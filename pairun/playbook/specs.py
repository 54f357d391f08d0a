"""Plugin specs: each YAML file turns a plugin of the job protocol into tasks of either phase."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from pairun.errors import PairunError, Problems, did_you_mean, nearest
from pairun.module import Phase, Secret, reveal
from pairun.plan import EXPAND, Late
from pairun.playbook.content import Content
from pairun.playbook.document.checking import KEYWORD_FORMAT, Format, violations
from pairun.playbook.document.reading import Node, elements, text
from pairun.playbook.drafts import Draft, PluginUse, TaskDraft, draft_task, free_id
from pairun.playbook.expressions.template import Scope, condition
from pairun.playbook.keywords import playbook_schema
from pairun.playbook.pluginfolders import FolderPlugins
from pairun.playbook.policy import Policy

PHASES: tuple[Phase, ...] = ("init", "runtime")
CALLBACK_EVENTS: Mapping[str, Mapping[str, str]] = {
    "task": {"taskStarts": "preCommands", "taskSucceeds": "postCommands", "taskFails": ""},
    "container": {"containerStart": "", "containerExit": ""},
}
"""The events of the job protocol and of its extension proposal, and an older parameter of each."""


def spec_schema(modules: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a plugin spec; ``modules`` as for `playbook_schema`."""
    base = playbook_schema(modules)
    # No groups: the playbook decides where a plugin's tasks run.
    tasks = {**base["properties"]["tasks"], "items": {"$ref": "#/$defs/task"}}
    return {
        "$schema": base["$schema"],
        "title": "pairun plugin spec",
        "type": "object",
        "required": ["summary"],
        "additionalProperties": False,
        "properties": {
            "summary": {"type": "string", "description": "One sentence for people."},
            "parameters": {"type": "object", "description": "JSON Schema of the parameters."},
            "expands": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Parameters whose texts `expanded` holds for tasks of the runtime "
                "phase: $NAME, ${NAME} and a leading ~ as in the user's container.",
            },
            "init": tasks,
            "runtime": tasks,
        },
        "$defs": base["$defs"],
    }


def add_plugins(
    drafts: Mapping[Phase, Draft],
    content: Content,
    folders: FolderPlugins,
    uses: list[PluginUse],
    policy: Policy,
    user_extension: Any,
    written: Mapping[str, str | Secret] | None,
    problems: Problems,
) -> None:
    """Append the tasks of every plugin that a role uses, in the order of collection.

    A plugin's first task gets the use's base id, further ones get ``<base>_2``, ``<base>_3``.

    Args:
        drafts: the playbooks.
        folders: the plugins that are folders with a program.
        uses: the plugins of the role.
        policy: which plugins a job may use.
        user_extension: the value of that name in specs.
        written: the scripts that the programs of folders wrote; None before they run.
    """
    taken = {t.id: 1 for d in drafts.values() for t in d.tasks()}
    uses_of: Counter[str] = Counter()
    for number, use in enumerate(uses):
        uses_of[use.plugin] += 1
        permission = policy.may_use(use.plugin)
        if not permission.granted(problems, f"use the plugin '{use.plugin}'", use.place):
            continue
        is_folder = use.plugin in folders.folders
        if is_folder:
            required = use.failure_policy == "fail"
            spec = folders.tasks(use.plugin, content, problems, required=required)
        else:
            spec = _spec(content, folders, use, problems)
        given = None if spec is None else _parameters(spec, use, problems)
        if spec is None or given is None:
            for draft in drafts.values():
                draft.left_out.add(use.base_id)
            continue
        parameters = given.plain()
        scope = {
            "parameters": parameters,
            "user_extension": user_extension,
            "plugin": {
                "name": use.plugin,
                "id": use.base_id,
                "suffix": f"_{uses_of[use.plugin]}" if uses_of[use.plugin] > 1 else "",
                "failure_policy": use.failure_policy,
                "required": use.failure_policy == "fail",
                "commands": _commands(given),
                **(folders.scope(use.plugin, number, content, written) if is_folder else {}),
            },
        }
        names = [str(each.value) for each in elements(spec, "expands")]
        expanded = {name: _expanded(parameters[name]) for name in names if name in parameters}
        # The init container has a different environment.
        scopes: dict[Phase, Any] = {"init": scope, "runtime": {**scope, "expanded": expanded}}
        for phase in PHASES:
            for node in elements(spec, phase):
                task = draft_task(
                    node,
                    content.modules,
                    "plugin",
                    problems,
                    scope=scopes[phase],
                    failure_policy=use.failure_policy,
                    handler_policy=use.failure_policy,
                    used_at=use.place,
                    given=given,
                )
                if task is None or _left_out(task, scope):
                    continue
                task.id = free_id(use.base_id, taken)
                steps = drafts[phase].steps
                steps.insert(drafts[phase].end(), task)


def _commands(given: Node) -> dict[str, dict[str, str | Secret]]:
    """A plugin's commands as one text for each event; a group of events without any is empty."""
    groups = {}
    for group, events in CALLBACK_EVENTS.items():
        texts = {}
        for event, older in events.items():
            listed = list(elements(given, older))
            for callback in elements(given, "callbacks"):
                if text(callback, "event") == event:
                    listed += elements(callback, "commands")
            commands = [n.value for n in listed if isinstance(n.value, str | Secret)]
            whole = "\n".join(map(reveal, commands))
            texts[event] = Secret(whole) if Secret in map(type, commands) else whole
        groups[group] = texts if any(map(reveal, texts.values())) else {}
    return groups


def _expanded(value: Any) -> Any:
    """A parameter as a shell in the user's container would expand it, known only at run time."""
    if isinstance(value, Mapping):
        return {name: _expanded(inner) for name, inner in value.items()}
    text = reveal(value) if isinstance(value, Secret) else value
    if not isinstance(text, str) or not ("$" in text or text.startswith("~")):
        return value
    because = "the environment of the user's container"
    return Late(template=EXPAND, expression=True, because=because, vars={"text": value})


def _left_out(task: TaskDraft, scope: Mapping[str, Any]) -> bool:
    """Whether a plugin's parameters alone exclude this task for this use."""
    when = task.node.get("when")
    if when is None or not isinstance(when.value, str):
        return False
    known = Scope({"parameters": scope["parameters"], "plugin": scope["plugin"]})
    try:
        return condition(when.value, when.place, known) is False
    except PairunError:
        # It uses more than parameters: compiling decides, and reports errors.
        return False


def _spec(
    content: Content, folders: FolderPlugins, use: PluginUse, problems: Problems
) -> Node | None:
    if use.plugin in content.specs:
        return content.document(*content.specs[use.plugin])
    report = problems.error if use.failure_policy == "fail" else problems.warning
    message = f"there is no plugin '{use.plugin}'"
    report(
        "PR511", message, use.place, did_you_mean(use.plugin, {*content.specs, *folders.folders})
    )
    return None


_PARAMETERS = Format("PR512", "PR512", "PR512", "parameter")


def _parameters(spec: Node, use: PluginUse, problems: Problems) -> Node | None:
    """The parameters with their defaults; None, with problems, if they do not fit."""
    schema_node = spec.get("parameters")
    schema = schema_node.plain() if schema_node else {}
    wrong = list(violations(use.parameters, schema, _PARAMETERS, whole="parameters"))
    problems.extend(wrong)
    if wrong:
        return None
    _unread(schema, use, problems)
    declared = schema_node.get("properties") if schema_node else None
    defaults = {n: d for n, p in (declared.items() if declared else ()) if (d := p.get("default"))}
    given = {n: v for n, v in use.parameters.items() if v.value is not None or n not in defaults}
    return Node({**defaults, **given}, use.parameters.place, use.parameters.key)


OPEN = ("patternProperties", "unevaluatedProperties", "propertyNames",
         "allOf", "anyOf", "oneOf", "if", "$ref")  # fmt: skip
"""Keywords that show that a schema allows further keys."""


def _unread(schema: Mapping[str, Any], use: PluginUse, problems: Problems) -> None:
    """Warn of keys that the schema does not list: a misspelt optional one would be ignored."""
    known = schema.get("properties")
    if not known or any(k in schema for k in ("additionalProperties", *OPEN)):
        return
    # A prerequisite's parameters are its whole entry, which has keys for others, too.
    free = use.parameters.place == use.place
    for name, node in use.parameters.items():
        if name not in known and (not free or nearest(name, known, 0.75)):
            message = f"the plugin '{use.plugin}' has no parameter '{name}'"
            problems.warning("PR911", message, node.head, did_you_mean(name, known))


def check_spec(node: Node, content: Content, problems: Problems) -> None:
    """Check a plugin spec, as ``pairun lint`` does."""
    schema = spec_schema({name: {} for name in content.modules})
    problems.extend(violations(node, schema, KEYWORD_FORMAT))
    parameters = node.get("parameters")
    _check_expands(node, parameters, problems)
    # A test checks the schemas of pairun's own plugins, so that they need no jsonschema here.
    if parameters is None or node.place.source.layer == "built-in":
        return
    from jsonschema import Draft202012Validator, SchemaError

    try:
        Draft202012Validator.check_schema(parameters.plain())
    except SchemaError as e:
        where = parameters.at(tuple(e.absolute_path)) or parameters
        problems.error("PR204", f"'parameters' is not a JSON Schema: {e.message}", where.place)


def _check_expands(node: Node, parameters: Node | None, problems: Problems) -> None:
    """Check that every name in ``expands`` is one of the plugin's parameters."""
    properties = parameters.get("properties") if parameters else None
    known = [name for name, _ in properties.items()] if properties else []
    for name in elements(node, "expands"):
        if name.value not in known:
            message = f"'expands' names the unknown parameter '{name.value}'"
            problems.error("PR204", message, name.place, did_you_mean(str(name.value), known))

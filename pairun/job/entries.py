"""Reads prerequisites and plugin items, the two ways in which a job uses plugins."""

from __future__ import annotations

from pairun.errors import Place, Problems, did_you_mean
from pairun.job.model import RUNTIME_PLUGIN, PluginEntry, Prerequisite
from pairun.plan import FailurePolicy
from pairun.playbook.document.reading import Node, elements, text
from pairun.playbook.document.scalars import js_text
from pairun.playbook.specs import CALLBACK_EVENTS

_PLUGIN_KEYS = ("plugin", "parameters", "taskroles", "failurePolicy", "hook")
_HOOKS = ("preTaskStarts", "postTaskSucceeds")


def read_prerequisites(document: Node, problems: Problems) -> tuple[Prerequisite, ...]:
    """The entries of ``prerequisites`` that have a name and a type."""
    prerequisites: dict[tuple[str, str], Prerequisite] = {}
    for node in elements(document, "prerequisites"):
        name, type_ = text(node, "name"), text(node, "type")
        if name is None or type_ is None:
            continue  # the schema check reports it
        entry = Prerequisite(
            name=name,
            type=type_,
            plugin=_prerequisite_plugin(node, problems),
            requires=tuple(r.value for r in elements(node, "require") if isinstance(r.value, str)),
            failure_policy=_failure_policy(node, problems),
            node=node,
        )
        if entry.plugin == "cmd":
            check_callbacks(node, problems)
        if first := prerequisites.get((type_, name)):
            message = f"two prerequisites of type {type_} are named '{name}'"
            problems.error("PR508", message, node.place, also=[("the first one", first.node.place)])
        else:
            prerequisites[type_, name] = entry
    return tuple(prerequisites.values())


def _prerequisite_plugin(node: Node, problems: Problems) -> str | None:
    plugin = node.get("plugin")
    if plugin is None:
        return "cmd" if node.get("callbacks") else None
    # Other kinds of plugins do not belong to the runtime; OpenPAI ignores them too.
    if not isinstance(plugin.value, str) or not plugin.value.startswith(RUNTIME_PLUGIN):
        return None
    name = plugin.value[len(RUNTIME_PLUGIN) + 1 :]
    if not name:
        message = f"'{plugin.value}' is not the name of a plugin"
        problems.error("PR503", message, plugin.place, f"for example {RUNTIME_PLUGIN}.cmd")
    return name or None


def check_requirements(prerequisites: tuple[Prerequisite, ...], problems: Problems) -> None:
    """Report requirements that do not exist, and cycles."""
    by_name = {p.name: p for p in prerequisites}
    done: set[str] = set()
    for start in prerequisites:
        # Depth first without recursion: each step is a prerequisite and its remaining list.
        path = {start.name: iter(start.requires)}
        while path and start.name not in done:
            name = next(reversed(path))
            required = next(path[name], None)
            if required is None:
                done.add(name)
                del path[name]
            elif required not in by_name:
                problems.error(
                    "PR505",
                    f"'{name}' requires '{required}', which does not exist",
                    _require_place(by_name[name], required),
                    did_you_mean(required, by_name),
                )
            elif required in path:
                chain = [*path]
                circle = [*chain[chain.index(required) :], required]
                message = f"prerequisites require each other: {' -> '.join(circle)}"
                problems.error("PR506", message, _require_place(by_name[name], required))
            elif required not in done:
                path[required] = iter(by_name[required].requires)


def _require_place(entry: Prerequisite, required: str) -> Place:
    nodes = elements(entry.node, "require")
    return next((n.place for n in nodes if n.value == required), entry.node.place)


def read_plugins(
    document: Node, role_names: frozenset[str], problems: Problems
) -> tuple[PluginEntry, ...]:
    """The items of ``extras["com.microsoft.pai.runtimeplugin"]``.

    OpenPAI's REST server does not check them, and the original runtime crashes on invalid ones.

    Args:
        role_names: the raw and sanitised names of the roles, for filters.
    """
    extras = document.get("extras")
    listed = extras.get(RUNTIME_PLUGIN) if extras else None
    if listed is None or listed.value is None:
        return ()
    if not isinstance(listed.value, list):
        problems.error("PR503", f"{RUNTIME_PLUGIN} must be a list of plugins", listed.place)
    entries = (_read_plugin(item, role_names, problems) for item in listed.elements())
    return tuple(e for e in entries if e)


def _read_plugin(item: Node, role_names: frozenset[str], problems: Problems) -> PluginEntry | None:
    if not isinstance(item.value, dict):
        problems.error("PR503", "an item of the plugins must be a mapping", item.place)
        return None
    for key, child in item.items():
        if key not in _PLUGIN_KEYS:
            message = f"unknown key '{key}' in a plugin's item has no effect"
            problems.warning("PR502", message, child.key, did_you_mean(key, _PLUGIN_KEYS))
    _check_hook(item, problems)
    roles = _read_filter(item, role_names, problems)
    policy = _failure_policy(item, problems)
    parameters = item.get("parameters")
    if parameters is not None and parameters.value is None:
        parameters = None
    plugin = item.get("plugin")
    if plugin is None:
        problems.error("PR504", "'plugin' is missing in an item of the plugins", item.place)
        return None
    if not isinstance(plugin.value, str) or not plugin.value:
        problems.error("PR503", "a plugin's name must be text", plugin.place)
        return None
    if plugin.value == "cmd" and parameters is not None:
        check_callbacks(parameters, problems)
    return PluginEntry(
        plugin=plugin.value, roles=roles, failure_policy=policy, parameters=parameters, node=item
    )


def _read_filter(
    item: Node, role_names: frozenset[str], problems: Problems
) -> tuple[str, ...] | None:
    filter_ = item.get("taskroles")
    if filter_ is None or filter_.value is None:
        return None
    if not isinstance(filter_.value, list):
        problems.error("PR503", "taskroles must be a list of role names", filter_.place)
    names = []
    for element in filter_.elements():
        name = js_text(element.value) if not isinstance(element.value, dict | list) else ""
        names.append(name)
        # OpenPAI runs such jobs, and applies the item to no role.
        if name not in role_names:
            message = f"the job has no role '{name}'"
            problems.warning("PR509", message, element.place, did_you_mean(name, role_names))
    return tuple(names)


def _check_hook(item: Node, problems: Problems) -> None:
    hook = item.get("hook")
    if hook is None or hook.value == _HOOKS[0]:
        return
    if hook.value not in _HOOKS:
        message = f"hook must be {' or '.join(_HOOKS)}"
        problems.error("PR503", message, hook.place, did_you_mean(str(hook.value), _HOOKS))
    else:
        message = "hook has no effect: the plugin decides when it runs"
        hint = "the cmd plugin has callbacks for the task's events"
        problems.warning("PR908", message, hook.place, hint)


def _failure_policy(node: Node, problems: Problems) -> FailurePolicy:
    policy = node.get("failurePolicy")
    word = policy.value.lower() if policy and isinstance(policy.value, str) else None
    if policy is not None and word not in {"fail", "ignore"}:
        message = "failurePolicy must be fail or ignore"
        problems.error(
            "PR503", message, policy.place, did_you_mean(str(policy.value), ("fail", "ignore"))
        )
    return "ignore" if word == "ignore" else "fail"


_EVENTS = [event for events in CALLBACK_EVENTS.values() for event in events]


def check_callbacks(parameters: Node, problems: Problems) -> None:
    """Check the ``callbacks`` of a plugin's parameters, if it has any."""
    callbacks = parameters.get("callbacks")
    if callbacks is None:
        return
    for other in ("preCommands", "postCommands"):
        if (beside := parameters.get(other)) is not None:
            message = f"callbacks cannot be combined with {other}"
            problems.error("PR513", message, beside.head, also=[("the callbacks", callbacks.head)])
    if not isinstance(callbacks.value, list):
        problems.error("PR503", "callbacks must be a list", callbacks.place)
        return
    for callback in callbacks.elements():
        _check(callback, problems)


def _check(callback: Node, problems: Problems) -> None:
    if not isinstance(callback.value, dict):
        problems.error("PR503", "a callback must be a mapping", callback.place)
        return
    for key, child in callback.items():
        if key not in {"event", "commands"}:
            message = f"unknown key '{key}' in a callback"
            problems.error("PR502", message, child.key, did_you_mean(key, ("event", "commands")))
    for key in ("event", "commands"):
        if callback.get(key) is None:
            problems.error("PR504", f"'{key}' is missing in a callback", callback.place)
    event, commands = callback.get("event"), callback.get("commands")
    if event is not None and not isinstance(event.value, str):
        problems.error("PR503", "a callback's event must be text", event.place)
    elif event is not None and event.value not in _EVENTS:
        message = f"nothing raises the event '{event.value}', so its commands never run"
        problems.warning("PR907", message, event.place, did_you_mean(event.value, _EVENTS))
    if commands is not None:
        _check_commands(commands, problems)


def _check_commands(commands: Node, problems: Problems) -> None:
    if not isinstance(commands.value, list):
        problems.error("PR503", "a callback's commands must be a list", commands.place)
    for command in commands.elements():
        if not isinstance(command.value, str):
            problems.error("PR503", "a command must be text", command.place, "quote it")

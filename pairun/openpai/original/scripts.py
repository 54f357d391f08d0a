"""Predicts the scripts that OpenPAI's own plugin programs write for a use of a plugin."""

from __future__ import annotations

from typing import NamedTuple

from pairun.job.model import Job, Role
from pairun.playbook.document.reading import Node
from pairun.playbook.inputs import PluginUse

_TRUE = ("true", "True", True)


class Scripts(NamedTuple):
    """Whether scripts exist for before and after the command; None if only a program can tell."""

    pre: bool | None
    post: bool | None


def scripts_of(use: PluginUse, job: Job, role: Role) -> Scripts:
    """The scripts of one use of a plugin in a role's first instance."""
    given = use.parameters
    match use.plugin:
        case "cmd":
            return Scripts(
                bool(_commands(given, "preCommands", "taskStarts")),
                bool(_commands(given, "postCommands", "taskSucceeds")),
            )
        case "ssh":
            user = given.get("userssh")
            keys = bool(user and user.value and user.get("type"))
            return Scripts(keys or (job.gang and _is_true(given.get("jobssh"))), post=False)
        case "git":
            target = given.get("clone_dir")
            return Scripts(bool(target and target.value), post=False)
        case "tensorboard":
            return Scripts(bool(given.value) and role.name == job.roles[0].name, post=False)
        case "teamwise_storage":
            return Scripts(pre=False, post=False)
    return Scripts(None, None)


def _is_true(node: Node | None) -> bool:
    return node is not None and node.value in _TRUE


def _commands(given: Node, key: str, event: str) -> list[Node]:
    listed = given.get(key)
    commands = list(listed.elements()) if listed else []
    callbacks = given.get("callbacks")
    for callback in callbacks.elements() if callbacks else ():
        raised, own = callback.get("event"), callback.get("commands")
        if raised is not None and raised.value == event and own is not None:
            commands += own.elements()
    return commands

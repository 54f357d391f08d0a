"""Callbacks: commands that a plugin runs on the events of a task."""

from __future__ import annotations

from pairun.errors import Problems, did_you_mean
from pairun.playbook.document.reading import Node

EVENTS = ("taskStarts", "taskSucceeds", "taskFails", "containerStart", "containerExit")
"""The events of the job protocol, and those of its extension proposal."""


def check_callbacks(parameters: Node, problems: Problems) -> None:
    """Check the ``callbacks`` of a plugin's parameters, if it has any."""
    callbacks = parameters.get("callbacks")
    if callbacks is None:
        return
    for other in ("preCommands", "postCommands"):
        if (beside := parameters.get(other)) is not None:
            problems.error(
                "PR513",
                f"callbacks cannot be combined with {other}",
                beside.key or beside.place,
                also=[("the callbacks", callbacks.key or callbacks.place)],
            )
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
            problems.error(
                "PR502",
                f"unknown key '{key}' in a callback",
                child.key,
                did_you_mean(key, ("event", "commands")),
            )
    for key in ("event", "commands"):
        if callback.get(key) is None:
            problems.error("PR504", f"'{key}' is missing in a callback", callback.place)
    event, commands = callback.get("event"), callback.get("commands")
    if event is not None and not isinstance(event.value, str):
        problems.error("PR503", "a callback's event must be text", event.place)
    elif event is not None and event.value not in EVENTS:
        problems.warning(
            "PR907",
            f"nothing raises the event '{event.value}', so its commands never run",
            event.place,
            did_you_mean(event.value, EVENTS),
        )
    if commands is not None:
        _check_commands(commands, problems)


def _check_commands(commands: Node, problems: Problems) -> None:
    if not isinstance(commands.value, list):
        problems.error("PR503", "a callback's commands must be a list", commands.place)
    for command in commands.elements():
        if not isinstance(command.value, str):
            problems.error("PR503", "a command must be text", command.place, "quote it")

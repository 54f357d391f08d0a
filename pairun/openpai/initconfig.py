"""``initPlugins``: a cluster's own list of init plugins, as OpenPAI's maintainers proposed it."""

from __future__ import annotations

import functools
import os
import re
import shlex
from typing import Any

from pairun.errors import Problems, Source, nearest
from pairun.openpai.podconfig import read_setting
from pairun.playbook.document.checking import Format, violations
from pairun.playbook.document.reading import Node, node_of, read_file
from pairun.playbook.document.scalars import CORE
from pairun.playbook.expressions.template import is_template
from pairun.playbook.initplugins import InitPlugin, InitPlugins

_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "init plugins of a cluster",
    "type": "object",
    "required": ["initPlugins"],
    "additionalProperties": False,
    "properties": {
        "initPlugins": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "command"],
                "additionalProperties": False,
                "properties": {
                    "name": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9 ._-]*$"},
                    "command": {"type": "string", "minLength": 1},
                },
            },
        }
    },
}
FORMAT = Format("PR711", "PR712", "PR713")
_PROGRAMS = os.path.join(os.path.dirname(__file__), "init_programs.yaml")
_HANDOVER = "handover"
_INTERPRETER = re.compile(r"(python(3(\.[0-9]+)?)?|bash|sh)")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def read_init_config(source: Source, init_dir: str | None, problems: Problems) -> InitPlugins:
    """Read a list of init plugins.

    Args:
        source: the text of ``INIT_CONFIG`` or of ``init_plugins.yaml``.
        init_dir: the folder of the operator's own programs, or None if there is none.
    """
    node = read_setting(source, ("initPlugins",), CORE)
    wrong = list(violations(node, _SCHEMA, FORMAT, whole=source.file))
    problems.extend(wrong)
    listed = node.get("initPlugins")
    entries = () if wrong or listed is None else listed.elements()
    plugins = [_plugin(e, init_dir) for e in entries]
    for entry, plugin in zip(entries, plugins, strict=True):
        if plugin.stands_for is None:
            _warn_of_a_slip(entry.value["command"], init_dir, problems)
    place = listed.head if listed is not None else node.place
    return InitPlugins(plugins=tuple(plugins), place=place)


def _plugin(entry: Node, init_dir: str | None) -> InitPlugin:
    name, command = entry.value["name"], entry.value["command"]
    task = _builtin_task(name.value, command.value, init_dir)
    if task not in (None, _HANDOVER):
        return InitPlugin(name=name.value, place=name.place, stands_for=task)
    if task == _HANDOVER:
        said = f"The user's command is rendered, after the last task ({name.value})"
        return _task(name, said, Node({"script": Node("", command.place)}, command.place))
    args = {"script": command}
    if init_dir is not None:
        args["workdir"] = Node(init_dir, command.place)
    args_node = Node(args, command.place, command.key)
    return _task(name, f"The init plugin {name.value}", args_node, init_dir)


def _task(name: Node, sentence: str, args: Node, init_dir: str | None = None) -> InitPlugin:
    """A `cmd` task; its author's text is data, even if it looks like an expression."""
    script = args.value["script"]
    scope = {"init_plugin": {"command": script.value, "dir": init_dir}}
    if is_template(script.value):
        args.value["script"] = Node("{{ init_plugin.command }}", script.place, script.key)
    environment = {
        "PAI_RUNTIME_DIR": "{{ env.PAI_RUNTIME_DIR | default('/usr/local/pai/runtime.d') }}"
    }
    if init_dir is not None:
        environment["PATH"] = f"{{{{ init_plugin.dir }}}}:{{{{ env.PATH | default('{_PATH}') }}}}"
    id_ = re.sub("[^A-Za-z0-9_]", "_", name.value)
    keywords = {"id": node_of(id_, name.place), "name": node_of(sentence, name.place), "cmd": args}
    if script.value:
        keywords["environment"] = node_of(environment, script.place)
    return InitPlugin(
        name=name.value, place=name.place, task=Node(keywords, name.place), scope=scope
    )


# --- which program it is -------------------------------------------------------------------------


def _builtin_task(name: str, command: str, init_dir: str | None) -> str | None:
    """The id of the task that replaces a command, or None if the command itself runs.

    The command's program decides: the operator's own if it is in the folder, else one of OpenPAI's.
    The plugin's name decides only if the program is neither.
    """
    program = program_of(command)
    if program is not None:
        own = os.path.isabs(program) or (
            init_dir is not None and os.path.isfile(os.path.join(init_dir, program))
        )
        if own:
            return None
        if (task := _programs().get(_plain(program))) is not None:
            return task
    return _programs().get(_plain(name))


def program_of(command: str) -> str | None:
    """The program that a command runs; for ``python frameworkParser.py x`` the script."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if words and _INTERPRETER.fullmatch(os.path.basename(words[0])):
        options = [w for w in words[1:] if w.startswith("-")]
        if {"-c", "-m"} & set(options):
            return None
        words = [w for w in words[1:] if not w.startswith("-")]
    return words[0] if words else None


def _warn_of_a_slip(command: Node, init_dir: str | None, problems: Problems) -> None:
    """Warn of a program whose name is almost one of OpenPAI's; the shell may still find it."""
    program = program_of(command.value)
    if program is None or os.path.isabs(program) or _plain(program) in _programs():
        return
    if init_dir is not None and os.path.isfile(os.path.join(init_dir, program)):
        return
    if near := nearest(_plain(program), _programs(), 0.85):
        message = f"'{program}' is not one of OpenPAI's programs, so the shell searches for it"
        problems.warning("PR720", message, command.place, f"did you mean '{_spellings()[near]}'?")


def _plain(program: str) -> str:
    """A program's name without the parts that people spell differently."""
    stem = os.path.basename(program).removesuffix(".py").removesuffix(".sh")
    return re.sub("[_-]", "", stem).lower()


@functools.cache
def _table() -> dict[str, list[str]]:
    """Task to the programs that it replaces."""
    table: dict[str, list[str]] = read_file(_PROGRAMS, "built-in").plain()
    return table


@functools.cache
def _programs() -> dict[str, str]:
    return {_plain(program): task for task, names in _table().items() for program in names}


def _spellings() -> dict[str, str]:
    return {_plain(program): program for names in _table().values() for program in names}

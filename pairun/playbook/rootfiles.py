"""The file names of a content root, and names that are almost one of them."""

from __future__ import annotations

import os
from collections.abc import Iterator

from pairun.contract.sources import ENTRY
from pairun.errors import Problem, nearest

RULES_FOLDER = "diagnosis"
PLUGIN_FOLDERS = "plugins"
MODULES = "modules"
FOLDERS = (MODULES, "playbooks", "plugin_specs", PLUGIN_FOLDERS, RULES_FOLDER)
DESCRIPTION = "desc.yaml"
"""The file that makes a folder a plugin in OpenPAI's form."""
PLAYBOOK_FILES = ("init", "runtime", "policy")
_YAML = (".yaml", ".yml")
_PLAIN_POD = ("init_plugins.yaml", "runtime_plugin.yaml")  # not playbooks


def not_a_root(path: str) -> Problem | None:
    """The problem of a path that is not a content root; None if it is one."""
    if any(os.path.isdir(os.path.join(path, f)) for f in FOLDERS):
        return None
    hint = f"it has none of the folders {', '.join(FOLDERS)}"
    return Problem("PR601", f"{path!r} is not a content root", hint=hint)


def unread(root: str, *, flat: bool = False) -> Iterator[Problem]:
    """Warn of files and folders that seem meant for pairun but that pairun does not read.

    Args:
        root: the content root.
        flat: a mounted ConfigMap, which may contain files of other programs.
    """
    if flat:
        yield from _playbooks(root, near_only=True)
        return
    names = _names_in(root)
    for name in names:
        path = os.path.join(root, name)
        if os.path.isdir(path):
            near = None if name in FOLDERS else nearest(name, FOLDERS)
            if name == PLUGIN_FOLDERS and not plugin_folders_in(path):
                near = "plugin_specs"
            if near and near not in names:
                yield _unread_path(path, f"did you mean '{near}'?")
        elif name.endswith(_YAML) and os.path.splitext(name)[0] in PLAYBOOK_FILES:
            yield _unread_path(path, "it belongs in the folder playbooks")
    yield from _playbooks(os.path.join(root, "playbooks"), near_only=False)
    for folder, ending in (("modules", ".py"), ("plugin_specs", ".yaml"), (RULES_FOLDER, ".yaml")):
        for path in _sources_in(os.path.join(root, folder)):
            if not path.endswith(ending):
                yield _unread_path(path, f"in {folder} names end with {ending}")
    modules = os.path.join(root, "modules")
    for name in _names_in(modules):
        path = os.path.join(modules, name)
        if (
            os.path.isdir(path)
            and not name.startswith(("_", "."))
            and not os.path.isfile(os.path.join(path, ENTRY))
        ):
            yield _unread_path(path, f"the folder of a module has a file {ENTRY}")


def plugin_folders_in(path: str) -> list[str]:
    """The paths of the plugin folders in a folder."""
    folders = [os.path.join(path, n) for n in _names_in(path) if not n.startswith((".", "_"))]
    return [f for f in folders if os.path.isfile(os.path.join(f, DESCRIPTION))]


def _playbooks(folder: str, *, near_only: bool) -> Iterator[Problem]:
    files = [f"{n}.yaml" for n in PLAYBOOK_FILES]
    for path in _sources_in(folder):
        name = os.path.basename(path)
        near = nearest(os.path.splitext(name)[0], PLAYBOOK_FILES)
        known = (*files, *_PLAIN_POD) if near_only else files
        if name not in known and (near or not near_only):
            hint = f"did you mean '{near}.yaml'?" if near else f"known: {', '.join(files)}"
            yield _unread_path(path, hint)


def _sources_in(folder: str) -> list[str]:
    """The files that look like pairun's; names that start with _ or . are skipped."""
    return [
        os.path.join(folder, n)
        for n in _names_in(folder)
        if n.endswith((*_YAML, ".py")) and not n.startswith(("_", "."))
    ]


def _names_in(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (OSError, ValueError):
        # A policy may give any text as a folder; Python rejects one with a NUL.
        return []


def _unread_path(path: str, hint: str) -> Problem:
    return Problem("PR912", f"pairun does not read {path}", None, hint, "warning")


def root_around(path: str) -> str | None:
    """The content root that seems to contain a file, judging by its folder's name."""
    folder = os.path.dirname(path) or "."
    if os.path.basename(os.path.abspath(folder)) not in FOLDERS:
        return None
    return os.path.dirname(folder) or (".." if folder == "." else ".")

"""Warns of files and folders of a content root whose names are almost right."""

from __future__ import annotations

import os
from collections.abc import Iterator

from pairun.contract.sources import ENTRY
from pairun.errors import Problem, nearest
from pairun.playbook.rootfiles import (
    FOLDERS,
    PLAYBOOK_FILES,
    PLUGIN_FOLDERS,
    RULES_FOLDER,
    names_in,
    plugin_folders_in,
)
from pairun.playbook.rootlooks import holds_sources

_YAML = (".yaml", ".yml")
_PLAIN_POD = ("init_plugins.yaml", "runtime_plugin.yaml")  # not playbooks


def unread(root: str, *, flat: bool = False) -> Iterator[Problem]:
    """Warn of files and folders that seem meant for pairun but that pairun does not read.

    Args:
        root: the content root.
        flat: a mounted ConfigMap, which may contain files of other programs.
    """
    if flat:
        yield from _playbooks(root, near_only=True)
        return
    names = names_in(root)
    for name in names:
        path = os.path.join(root, name)
        if os.path.isdir(path):
            near = None if name in FOLDERS else nearest(name, FOLDERS)
            if name == PLUGIN_FOLDERS and not plugin_folders_in(path):
                near = "plugin_specs"
            if near and (near not in names or holds_sources(path, near)):
                yield _unread_path(path, f"did you mean '{near}'?")
        elif name.endswith(_YAML) and os.path.splitext(name)[0] in PLAYBOOK_FILES:
            yield _unread_path(path, "it belongs in the folder playbooks")
    yield from _playbooks(os.path.join(root, "playbooks"), near_only=False)
    for folder, ending in (("modules", ".py"), ("plugin_specs", ".yaml"), (RULES_FOLDER, ".yaml")):
        for path in _sources_in(os.path.join(root, folder)):
            if not path.endswith(ending):
                yield _unread_path(path, f"in {folder} names end with {ending}")
    modules = os.path.join(root, "modules")
    for name in names_in(modules):
        path = os.path.join(modules, name)
        if (
            os.path.isdir(path)
            and not name.startswith(("_", "."))
            and not os.path.isfile(os.path.join(path, ENTRY))
        ):
            yield _unread_path(path, f"the folder of a module has a file {ENTRY}")


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
        for n in names_in(folder)
        if n.endswith((*_YAML, ".py")) and not n.startswith(("_", "."))
    ]


def _unread_path(path: str, hint: str) -> Problem:
    return Problem("PR912", f"pairun does not read {path}", None, hint, "warning")

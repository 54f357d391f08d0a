"""Detects a folder that is a content root but is not configured as one, from its files' content.

Other projects have folders named ``modules``, ``playbooks`` and ``plugins``, too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from pairun.base.pattern import Pattern
from pairun.errors import nearest
from pairun.playbook.rootfiles import DESCRIPTION, FOLDERS, MODULES, PLUGIN_FOLDERS

_MAX_FILES = 200
_MAX_BYTES = 64 * 1024
_YAML = (".yaml", ".yml")
_MARKS = {
    MODULES: Pattern(rb"^\s*(?:from|import)\s+pairun\b", re.MULTILINE),
    "playbooks": Pattern(rb"^(?:phase|job_may)\s*:", re.MULTILINE),
    "plugin_specs": Pattern(rb"^(?:summary|parameters|init|runtime)\s*:", re.MULTILINE),
    "diagnosis": Pattern(rb"^(?:rules|classes|exit_codes)\s*:", re.MULTILINE),
    PLUGIN_FOLDERS: Pattern(rb"^init-script\s*:", re.MULTILINE),
}
"""For each folder, content that only pairun's files have."""


def looks_like_root(path: str) -> bool:
    """Whether a folder has a file of a content root, even in a misspelt folder.

    Args:
        path: the folder.
    """
    return any(_is_meant(os.path.join(path, name), name) for name in _names_in(path))


def imports_pairun(package: str) -> bool:
    """Whether a folder with Python files is a module of pairun, not just any package.

    Args:
        package: the folder.
    """
    files = (os.path.join(package, n) for n in _names_in(package) if n.endswith(".py"))
    return any(_MARKS[MODULES].compiled.search(_head(file)) for file in files)


def _is_meant(folder: str, name: str) -> bool:
    meant = name if name in FOLDERS else nearest(name, FOLDERS)
    if meant is None or not os.path.isdir(folder):
        return False
    if name != meant and any(_is_meant(os.path.join(folder, n), n) for n in FOLDERS):
        return False  # itself a content root, which may have any name
    return holds_sources(folder, meant)


def holds_sources(folder: str, meant: str) -> bool:
    """Whether a folder, whatever its name, has a file of one of a content root's folders.

    Args:
        folder: its path.
        meant: the folder of a content root, such as ``playbooks``.
    """
    # People also put plugin specs into plugins/.
    marks = [_MARKS[meant], *([_MARKS["plugin_specs"]] if meant == PLUGIN_FOLDERS else [])]
    return any(
        mark.compiled.search(_head(file)) for file in _files_in(folder, meant) for mark in marks
    )


def _files_in(folder: str, meant: str) -> Iterator[str]:
    """The files that can show the kind of a folder."""
    for name in _names_in(folder)[:_MAX_FILES]:
        path = os.path.join(folder, name)
        if meant == MODULES and os.path.isdir(path):
            yield from (os.path.join(path, n) for n in _names_in(path) if n.endswith(".py"))
        elif meant == PLUGIN_FOLDERS and os.path.isdir(path):
            yield os.path.join(path, DESCRIPTION)
        elif name.endswith(".py" if meant == MODULES else _YAML):
            yield path


def _head(path: str) -> bytes:
    try:
        if not os.path.isfile(path):  # a FIFO would block
            return b""
        with open(path, "rb") as file:
            return file.read(_MAX_BYTES)
    except OSError:
        return b""


def _names_in(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []

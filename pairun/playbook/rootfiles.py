"""The file names of a content root."""

from __future__ import annotations

import contextlib
import os
import re

from pairun.errors import Problem

RULES_FOLDER = "diagnosis"
PLUGIN_FOLDERS = "plugins"
MODULES = "modules"
FOLDERS = (MODULES, "playbooks", "plugin_specs", PLUGIN_FOLDERS, RULES_FOLDER)
DESCRIPTION = "desc.yaml"
"""The file that makes a folder a plugin in OpenPAI's form."""
PLAYBOOK_FILES = ("init", "runtime", "policy")
_OURS = (
    rb"(?m)^(?:phase|job_may|summary|parameters|init|runtime|rules|classes|exit_codes|init-script)\s*:"
    rb"|^\s*(?:from|import)\s+pairun\b"
)


def not_a_root(path: str) -> Problem | None:
    """The problem of a path that is not a content root; None if it is one."""
    if any(os.path.isdir(os.path.join(path, f)) for f in FOLDERS):
        return None
    return Problem("PR601", f"{path!r} is not a content root", hint=_correction(path))


def _correction(path: str) -> str:
    """The hint for a path that is not a content root."""
    missing = f"it has none of the folders {', '.join(FOLDERS)}"
    if not os.path.isdir(path):
        return missing
    whole = os.path.abspath(path)
    if os.path.basename(whole) in FOLDERS:
        above = os.path.dirname(os.path.normpath(path)) or os.path.dirname(whole)
        return f"it is a folder of a content root: give {above}"
    playbooks = [n for n in names_in(path) if n in {f"{p}.yaml" for p in PLAYBOOK_FILES}]
    if playbooks:
        return (
            f"it has {', '.join(playbooks)} itself: move them to a folder 'playbooks' in it, "
            f"or set PAI_CONFIG_DIR={path} in place of --root"
        )
    return missing


def is_root(path: str) -> bool:
    """Whether a folder has a file of a content root; other projects have ``playbooks``, too."""
    folders = [os.path.join(path, folder) for folder in FOLDERS]
    return any(is_ours(os.path.join(f, name)) for f in folders for name in names_in(f))


def is_ours(path: str, *endings: str) -> bool:
    """Whether a file, or one in a folder, has what only pairun's files have.

    Args:
        endings: of the names of files that count; by default those of YAML and of Python.
    """
    files = [os.path.join(path, name) for name in names_in(path)] or [path]
    for file in files:
        if file.endswith(endings or (".yaml", ".yml", ".py")) and os.path.isfile(file):
            with contextlib.suppress(OSError), open(file, "rb") as f:
                if re.search(_OURS, f.read(64 * 1024)):
                    return True
    return False


def plugin_folders_in(path: str) -> list[str]:
    """The paths of the plugin folders in a folder."""
    folders = [os.path.join(path, n) for n in names_in(path) if not n.startswith((".", "_"))]
    return [f for f in folders if os.path.isfile(os.path.join(f, DESCRIPTION))]


def names_in(folder: str) -> list[str]:
    """The names in a folder, sorted; none if it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except (OSError, ValueError):
        # A policy may give any text as a folder; Python rejects one with a NUL.
        return []


def root_around(path: str) -> str | None:
    """The content root that seems to contain a file, judging by its folder's name."""
    folder = os.path.dirname(path) or "."
    if os.path.basename(os.path.abspath(folder)) not in FOLDERS:
        return None
    return os.path.dirname(folder) or (".." if folder == "." else ".")

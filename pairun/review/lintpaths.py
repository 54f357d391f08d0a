"""Lists the files that ``pairun lint`` checks in a folder: content roots, modules, job files."""

from __future__ import annotations

import os
from collections.abc import Iterator

from pairun.base.runfolders import MARKER
from pairun.contract.sources import module_at, module_paths
from pairun.errors import PairunError, Problem
from pairun.playbook.rootfiles import DESCRIPTION, MODULES, is_ours, is_root

_MAX_FILES = 1000
_YAML = (".yaml", ".yml")


def files_in(folder: str) -> list[str]:
    """The YAML files and modules in a folder and below it, sorted by name.

    pairun does not follow links to folders. It skips names that begin with ``_`` or ``.``, as
    everywhere in a content root, and the work directories of ``pairun run``. In a plugin folder of
    OpenPAI's form it lists only the description.

    Args:
        folder: its path.

    Raises:
        PairunError: there are no files, there are too many, or a folder cannot be read.
    """
    files: list[str] = []
    for path in _below(folder):
        files.append(path)
        if len(files) > _MAX_FILES:
            raise _refusal(folder, f"it has more than {_MAX_FILES} files")
    if not files:
        raise _refusal(folder, "it has no YAML file and no module")
    return files


def _below(folder: str) -> Iterator[str]:
    """The same without a limit; a stack holds the folders, which may be deeper than calls nest."""
    waiting = [_inside(folder)]
    while waiting:
        for path, is_folder in waiting[-1]:
            if is_folder:
                waiting.append(_inside(path))
                break
            yield path
        else:
            waiting.pop()


def _inside(folder: str) -> Iterator[tuple[str, bool]]:
    """The files to check and the folders in a folder, each with whether it is a folder."""
    module = module_at(folder)
    if module is not None and is_ours(module, ".py"):
        yield folder, False
        return
    if os.path.isfile(description := os.path.join(folder, DESCRIPTION)):
        yield description, False
        return
    modules = []
    whole = os.path.abspath(folder)
    if os.path.basename(whole) == MODULES and is_root(os.path.dirname(whole)):
        modules = list(module_paths(folder).values())
        yield from ((module, False) for module in modules)
    try:
        names = sorted(os.listdir(folder))
    except OSError as e:
        raise _refusal(folder, e.strerror or str(e)) from e
    for name in names:
        path = os.path.join(folder, name)
        if name.startswith(("_", ".")) or path in modules:
            continue
        if os.path.isdir(path):
            if not os.path.islink(path) and not os.path.isfile(os.path.join(path, MARKER)):
                yield path, True
        elif name.endswith(_YAML) and os.path.isfile(path):
            yield path, False


def _refusal(folder: str, why: str) -> PairunError:
    hint = "name the files, or smaller folders"
    return PairunError(Problem("PR108", f"{folder} cannot be linted: {why}", hint=hint))

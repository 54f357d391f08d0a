"""Loads modules by path from a content root, only if a plan uses them."""

from __future__ import annotations

import importlib.machinery
import os
from collections.abc import Callable, Mapping
from types import ModuleType

import attrs

from pairun.base.folder import Folder
from pairun.base.machine import MACHINE
from pairun.base.paths import built_in_folder
from pairun.contract.arguments import mistakes
from pairun.contract.importing import PACKAGE, execute
from pairun.contract.sources import ModuleSource, read_source
from pairun.errors import PairunError, Problem
from pairun.module import CheckModule, Module, StateModule


@attrs.frozen(kw_only=True)
class ModuleFile:
    """The location and digest of a module's source.

    Attributes:
        path: the file or the folder; of a built-in module, within pairun's own content root.
        sha256: hex digest of the source (`ModuleSource.sha256`).
        built_in: whether every pairun of this version contains it.
    """

    path: str
    sha256: str
    built_in: bool


def load_module(name: str, path: str) -> type[Module]:
    """The module class of a file or a folder.

    Args:
        name: the module's name, for messages.
        path: the file, or the folder with an ``__init__.py``.

    Raises:
        PairunError: the source cannot be read, raises on import, contains no or several module
            classes, or an incomplete one.
    """
    return class_in(name, read_source(name, path))


def planned_source(name: str, file: ModuleFile, files: Folder = MACHINE) -> ModuleSource:
    """The source of a module that is not built in, as planned.

    Args:
        name: the module's name.
        file: its location and digest.
        files: reads the path.

    Raises:
        PairunError: it cannot be read, or has changed since.
    """
    source = read_source(name, file.path, files)
    if source.sha256() != file.sha256:
        message = f"the source of module {name} changed since the plan was made: {file.path}"
        raise PairunError(Problem("PR703", message))
    return source


_LOADED: dict[str, tuple[ModuleSource, type[Module]]] = {}
"""The last loaded source of each module name, and its class: the planner also runs it."""


def class_in(name: str, source: ModuleSource) -> type[Module]:
    """The class in a source, which is executed unless it was the last of its name; see `load_module`."""
    # Remove it first: if this source fails, sys.modules must not contain the other one either.
    source_and_class = _LOADED.pop(name, None)
    if source_and_class is None or source_and_class[0] != source:
        source_and_class = (source, _module_class(source.path, execute(name, source)))
    _LOADED[name] = source_and_class
    return source_and_class[1]


def _module_class(path: str, loaded: ModuleType) -> type[Module]:
    classes = {
        c
        for c in vars(loaded).values()
        if isinstance(c, type)
        and issubclass(c, Module)
        and c not in (Module, StateModule, CheckModule)
        and f"{c.__module__}.".startswith(f"{loaded.__name__}.")
    }
    if len(classes) != 1:
        raise PairunError(
            Problem("PR602", f"{path} must hold one module class, it holds {len(classes)}")
        )
    (cls,) = classes
    if not issubclass(cls, StateModule | CheckModule) or not hasattr(cls, "__attrs_attrs__"):
        raise PairunError(
            Problem(
                "PR603",
                f"the class of {path} must be a StateModule or a CheckModule made with @define",
            )
        )
    if problems := [Problem("PR603", f"{path} {w}", None, hint) for w, hint in mistakes(cls)]:
        raise PairunError(*problems)
    return cls


def _load_built_in(name: str, path: str) -> type[Module]:
    frozen = f"{PACKAGE}.{name}"
    if importlib.machinery.FrozenImporter.find_spec(frozen) is not None:
        # It is part of the program, like pairun: there are no files.
        return _module_class(path, importlib.import_module(frozen))
    return load_module(name, os.path.join(built_in_folder(), path))


def plan_loader(
    modules: Mapping[str, ModuleFile], files: Folder = MACHINE
) -> Callable[[str], type[Module]]:
    """A loader for the modules of a plan: each is read once and checked against its digest.

    Args:
        modules: the plan's modules by name.
        files: reads modules that are not built in.
    """
    loaded: dict[str, type[Module]] = {}

    def load(name: str) -> type[Module]:
        if name not in loaded:
            file = modules.get(name)
            if file is None:
                raise PairunError(Problem("PR602", f"the plan does not say where module {name} is"))
            # A built-in module is part of pairun, and as trusted.
            loaded[name] = (
                _load_built_in(name, file.path)
                if file.built_in
                else class_in(name, planned_source(name, file, files))
            )
        return loaded[name]

    return load

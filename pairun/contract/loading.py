"""Loads modules by path from a content root, only if a plan uses them.

Imports them from the bytes that were read, not from the disk.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from types import CodeType, ModuleType
from typing import NamedTuple

from pairun.base.folder import Folder
from pairun.base.machine import MACHINE
from pairun.base.paths import built_in_folder
from pairun.base.system import BUNDLED
from pairun.contract.arguments import mistakes
from pairun.contract.sources import ENTRY, ModuleSource, read_source
from pairun.errors import PairunError, Place, Problem
from pairun.module import CheckModule, Module, StateModule


class ModuleFile(NamedTuple):
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

    Raises:
        PairunError: it cannot be read, or has changed since.
    """
    source = read_source(name, file.path, files)
    if source.sha256() != file.sha256:
        message = f"the source of module {name} changed since the plan was made: {file.path}"
        raise PairunError.of("PR703", message)
    return source


_LOADED: dict[str, tuple[ModuleSource, type[Module]]] = {}
"""The last loaded source of each module name, and its class: the planner also runs it."""


def class_in(name: str, source: ModuleSource) -> type[Module]:
    """The class in a source, which is executed unless it was the last of its name; see `load_module`."""
    # Remove it first: if this source fails, sys.modules must not contain the other one either.
    source_and_class = _LOADED.pop(name, None)
    if source_and_class is None or source_and_class[0] != source:
        source_and_class = (source, _module_class(source.path, execute(name, source), source))
    _LOADED[name] = source_and_class
    return source_and_class[1]


def _module_class(
    path: str, loaded: ModuleType, source: ModuleSource | None = None
) -> type[Module]:
    classes = {
        c
        for c in vars(loaded).values()
        if isinstance(c, type)
        and issubclass(c, Module)
        and c not in (Module, StateModule, CheckModule)
        and f"{c.__module__}.".startswith(f"{loaded.__name__}.")
    }
    if len(classes) != 1:
        names = ", ".join(sorted(c.__name__ for c in classes))
        holds = f"it holds {len(classes)}" + (f": {names}" if names else "")
        raise PairunError.of("PR602", f"{path} must hold one module class, {holds}")
    (cls,) = classes
    if not issubclass(cls, StateModule | CheckModule) or not hasattr(cls, "__attrs_attrs__"):
        message = f"the class of {path} must be a StateModule or a CheckModule made with @define"
        raise PairunError.of("PR603", message, hint=f"write @define above `class {cls.__name__}`")
    if found := [
        Problem("PR603", f"{path} {what}", _place(cls, attribute, source), hint)
        for attribute, what, hint in mistakes(cls)
    ]:
        raise PairunError(*found)
    return cls


def _place(cls: type[Module], attribute: str, source: ModuleSource | None) -> Place | None:
    from pairun.contract.linting import declaration  # few modules have a mistake

    try:
        return source.at(*declaration(cls, attribute, source)) if source else None
    except (SyntaxError, ValueError):  # one of its files is not Python
        return None


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
        files: reads modules that are not built in.
    """
    loaded: dict[str, type[Module]] = {}

    def load(name: str) -> type[Module]:
        if name not in loaded:
            file = modules.get(name)
            if file is None:
                raise PairunError.of("PR602", f"the plan does not say where module {name} is")
            # A built-in module is part of pairun, and as trusted.
            loaded[name] = (
                _load_built_in(name, file.path)
                if file.built_in
                else class_in(name, planned_source(name, file, files))
            )
        return loaded[name]

    return load


PACKAGE = "pairun_modules"
"""Modules are imported as parts of this package, which has no folder."""


def execute(name: str, source: ModuleSource) -> ModuleType:
    """Import a module; it replaces the one that had its name before.

    Raises:
        PairunError: it fails on import.
    """
    qualified = f"{PACKAGE}.{name}"
    _forget(qualified)
    spec = _spec(qualified, source, source.entry)
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    # typing.get_type_hints looks up a class's names in its module
    sys.modules[qualified] = loaded
    if source.is_folder:
        _FINDER.sources[qualified] = source
    try:
        # Standard output may be a document (--json), in which a module's output has no place.
        with contextlib.redirect_stdout(sys.stderr):
            spec.loader.exec_module(loaded)
    except (Exception, SystemExit) as e:
        _forget(qualified)
        raise PairunError(_import_problem(name, source, e)) from e
    return loaded


def _forget(qualified: str) -> None:
    """Remove a module and the files of its folder from the import system."""
    _FINDER.sources.pop(qualified, None)
    for key in [k for k in sys.modules if k == qualified or k.startswith(f"{qualified}.")]:
        del sys.modules[key]


class _Loader(importlib.machinery.SourceFileLoader):
    """Executes the bytes that were read, even if the file has changed since."""

    def __init__(self, fullname: str, source: ModuleSource, file: str) -> None:
        super().__init__(fullname, source.place(file))
        self._files = {source.place(f): data for f, data in source.files.items()}
        # Python caches the compiled code of built-in modules, as for pairun itself.
        self._is_built_in = not BUNDLED and source.path.startswith(
            os.path.join(built_in_folder(), "modules", "")
        )

    def get_code(self, fullname: str) -> CodeType | None:
        if self._is_built_in:
            return super().get_code(fullname)
        return compile(self._files[self.path], self.path, "exec", dont_inherit=True)

    def get_data(self, path: str) -> bytes:
        """The bytes of a module's file; so `pkgutil.get_data` reads what was digested."""
        if path in self._files:
            return self._files[path]
        if self._is_built_in:
            return super().get_data(path)  # compiled code
        raise FileNotFoundError(f"{path} is not a file of the module")


def _spec(fullname: str, source: ModuleSource, file: str) -> importlib.machinery.ModuleSpec:
    is_package = source.is_folder and os.path.basename(file) == ENTRY
    spec = importlib.util.spec_from_file_location(
        fullname,
        source.place(file),
        loader=_Loader(fullname, source, file),
        submodule_search_locations=[] if is_package else None,
    )
    assert spec is not None
    return spec


class _Finder:
    """Finds the files of modules that are folders, for their relative imports, and `PACKAGE`.

    Attributes:
        sources: by the full name of the module.
    """

    def __init__(self) -> None:
        self.sources: dict[str, ModuleSource] = {}

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None = None, _target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Python's import system calls this for every module that it has not imported yet."""
        if fullname == PACKAGE:
            return importlib.machinery.ModuleSpec(PACKAGE, None, is_package=True)
        if not fullname.startswith(f"{PACKAGE}."):
            return None
        name, _, inner = fullname.removeprefix(f"{PACKAGE}.").partition(".")
        source = self.sources.get(f"{PACKAGE}.{name}")
        if source is None or not inner:
            return None
        stem = inner.replace(".", "/")
        for file in (f"{stem}.py", f"{stem}/{ENTRY}"):
            if file in source.files:
                return _spec(fullname, source, file)
        # Do not ask the next finder: in the bundle it has the built-in module of that name.
        raise ModuleNotFoundError(f"the module {name} has no file {stem}.py", name=fullname)


_FINDER = _Finder()
sys.meta_path.insert(0, _FINDER)


def _import_problem(name: str, source: ModuleSource, error: BaseException) -> Problem:
    file, line = _origin(error, source)
    what = f"{type(error).__name__}: {error} ({source.place(file)}, line {line})"
    message, place = f"the module {name} fails on import: {what}", source.at(file, line)
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    if missing and source.is_folder and {f"{missing}.py", f"{missing}/{ENTRY}"} & {*source.files}:
        hint = f"write `from .{missing} import …`"
        message += ": a module imports its own files relatively"
        return Problem("PR602", message, place, hint)
    return Problem("PR602", message, place)


def _origin(error: BaseException, source: ModuleSource) -> tuple[str, int]:
    """The module's file and line at which an error was raised."""
    places = {source.place(file): file for file in source.files}
    if isinstance(error, SyntaxError) and error.filename in places:
        return places[error.filename], error.lineno or 0
    file, line, trace = source.entry, 0, error.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename in places:
            file, line = places[trace.tb_frame.f_code.co_filename], trace.tb_lineno
        trace = trace.tb_next
    return file, line

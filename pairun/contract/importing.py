"""Imports a module from the bytes that were read, not from the disk."""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from types import CodeType, ModuleType

from pairun.base.paths import built_in_folder
from pairun.base.system import BUNDLED
from pairun.contract.sources import ENTRY, ModuleSource
from pairun.errors import PairunError, Problem

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
    path, line = _origin(error, source)
    message = (
        f"the module {name} fails on import: {type(error).__name__}: {error} ({path}, line {line})"
    )
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    if missing and source.is_folder and {f"{missing}.py", f"{missing}/{ENTRY}"} & {*source.files}:
        return Problem(
            "PR602",
            f"{message}: a module imports its own files relatively",
            hint=f"write `from .{missing} import …`",
        )
    return Problem("PR602", message)


def _origin(error: BaseException, source: ModuleSource) -> tuple[str, int]:
    """The module's file and line at which an error was raised."""
    places = {source.place(file) for file in source.files}
    if isinstance(error, SyntaxError) and error.filename in places:
        return error.filename, error.lineno or 0
    path, line, trace = source.place(source.entry), 0, error.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename in places:
            path, line = trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next
    return path, line

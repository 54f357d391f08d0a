"""Modules are loaded by path from a content root, only when a plan uses them."""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from types import CodeType, ModuleType

import attrs

from pairun.base.system import BUNDLED
from pairun.contract.mistakes import mistakes
from pairun.errors import PairunError, Problem
from pairun.module import CheckModule, Module, StateModule


@attrs.frozen(kw_only=True)
class ModuleFile:
    """Where a module's source is, and which one was planned.

    Attributes:
        path: of a built-in module within the content root that travels with pairun.
        sha256: hex digest of the file.
        built_in: whether every pairun of this version has it.
    """

    path: str
    sha256: str
    built_in: bool


def load_module(name: str, path: str, sha256: str | None = None) -> type[Module]:
    """The one module class of a file.

    Args:
        name: the module's name, for messages.
        path: the file.
        sha256: hex digest of the file that was planned, or None to take any.

    Raises:
        PairunError: the file is missing, is not the one that was planned, raises on import,
            holds no or several module classes, or one that lacks what a module must have.
    """
    try:
        with open(path, "rb") as f:
            data = f.read()
    except OSError as e:
        raise PairunError(
            Problem("PR602", f"the module {name} cannot be read from {path}: {e.strerror}")
        ) from e
    if sha256 is not None and _digest(data) != sha256:
        raise PairunError(
            Problem("PR703", f"the file of module {name} changed since the plan was made: {path}")
        )
    return _class_in(name, path, data)


_LOADED: dict[str, tuple[str, bytes, type[Module]]] = {}
"""By module name the file that was loaded last, its text and its class: who plans runs it too."""


def _class_in(name: str, path: str, data: bytes) -> type[Module]:
    """The class of a file with this text, which is executed unless it was the last of its name."""
    # Out of the table meanwhile: where this one cannot be used, sys.modules has the other no more.
    known = _LOADED.pop(name, None)
    if known is None or known[:2] != (path, data):
        known = (path, data, _module_class(path, _execute(name, path, data)))
    _LOADED[name] = known
    return known[2]


def _digest(data: bytes) -> str:
    # OpenSSL comes with it, and every attempt is a fork of all that was imported.
    import hashlib

    return hashlib.sha256(data).hexdigest()


def _execute(name: str, path: str, data: bytes) -> ModuleType:
    qualified = f"pairun_modules.{name}"
    spec = importlib.util.spec_from_loader(qualified, loader=None, origin=path)
    assert spec is not None
    loaded = importlib.util.module_from_spec(spec)
    loaded.__file__ = path
    # typing.get_type_hints looks the names of a class up in its module
    sys.modules[qualified] = loaded
    try:
        # Standard output may be a document (--json): what a module prints here is none of it.
        with contextlib.redirect_stdout(sys.stderr):
            exec(_code(qualified, path, data), loaded.__dict__)  # noqa: S102 - that is what a module is
    except (Exception, SystemExit) as e:
        del sys.modules[qualified]
        raise PairunError(
            Problem(
                "PR602",
                f"the module {name} fails on import: {type(e).__name__}: {e} "
                f"({path}, line {_line(e, path)})",
            )
        ) from e
    return loaded


def _code(qualified: str, path: str, data: bytes) -> CodeType:
    """A module's text compiled; of a built-in one what is kept of an earlier time, as of pairun."""
    # In the bundle pairun has no folder; built-in modules never come here there.
    if not BUNDLED and os.path.dirname(path) == os.path.join(built_in_folder(), "modules"):
        code = importlib.machinery.SourceFileLoader(qualified, path).get_code(qualified)
        assert code is not None  # there is a text
        return code
    return compile(data, path, "exec")


def _line(error: BaseException, path: str) -> int:
    if isinstance(error, SyntaxError):
        return error.lineno or 0
    line, trace = 0, error.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _module_class(path: str, loaded: ModuleType) -> type[Module]:
    classes = [
        c
        for c in vars(loaded).values()
        if isinstance(c, type)
        and issubclass(c, Module)
        and c not in (Module, StateModule, CheckModule)
        and c.__module__ == loaded.__name__
    ]
    if len(classes) != 1:
        raise PairunError(
            Problem("PR602", f"{path} must hold one module class, it holds {len(classes)}")
        )
    cls = classes[0]
    if not issubclass(cls, StateModule | CheckModule) or not hasattr(cls, "__attrs_attrs__"):
        raise PairunError(
            Problem(
                "PR603",
                f"the class of {path} must be a StateModule or a CheckModule made with @define",
            )
        )
    if found := [Problem("PR603", f"{path} {what}", None, hint) for what, hint in mistakes(cls)]:
        raise PairunError(*found)
    return cls


def built_in_folder() -> str:
    """The content root that travels with pairun: in a wheel below the package, else the checkout."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    installed = os.path.join(package, "builtin")
    return installed if os.path.isdir(installed) else os.path.dirname(package)


def _load_built_in(name: str, path: str) -> type[Module]:
    frozen = f"pairun_modules.{name}"
    if importlib.machinery.FrozenImporter.find_spec(frozen) is not None:
        # Part of the program itself, as is pairun: there are no files.
        return _module_class(path, importlib.import_module(frozen))
    return load_module(name, os.path.join(built_in_folder(), path))


def plan_loader(modules: Mapping[str, ModuleFile]) -> Callable[[str], type[Module]]:
    """A loader for the modules of a plan: each is read once and checked against its digest.

    Args:
        modules: the plan's modules by name.
    """
    loaded: dict[str, type[Module]] = {}

    def load(name: str) -> type[Module]:
        if name not in loaded:
            file = modules.get(name)
            if file is None:
                raise PairunError(Problem("PR602", f"the plan does not say where module {name} is"))
            # A built-in module lies where pairun itself lies, and is as trustworthy.
            loaded[name] = (
                _load_built_in(name, file.path)
                if file.built_in
                else load_module(name, file.path, file.sha256)
            )
        return loaded[name]

    return load

"""What lint finds in a module's source: imports that an image may lack, wrong defaults, undefined names."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

from pairun.base.foreignjson import parse_json
from pairun.contract.arguments import arguments
from pairun.contract.sources import ENTRY, ModuleSource
from pairun.module import Module

ABSENT = frozenset({
    "aifc", "antigravity", "asynchat", "asyncore", "audioop", "bdb", "cgitb", "chunk",
    "compileall", "cProfile", "crypt", "ctypes", "curses", "dbm", "distutils", "doctest",
    "ensurepip", "idlelib", "imghdr", "lib2to3", "mailbox", "mailcap", "modulefinder",
    "msilib", "multiprocessing", "nis", "nntplib", "nturl2path", "ossaudiodev", "pdb",
    "pickletools", "plistlib", "profile", "pstats", "py_compile", "pyclbr", "pydoc",
    "pydoc_data", "readline", "rlcompleter", "smtpd", "sndhdr", "spwd", "sqlite3", "sunau",
    "tabnanny", "telnetlib", "this", "tkinter", "trace", "turtle", "turtledemo", "unittest",
    "venv", "wave", "winreg", "wsgiref", "xdrlib", "xml", "xmlrpc", "zipapp",
})  # fmt: skip
"""Parts of the standard library that are missing in the user's container."""

FACES = ("pairun.module", "pairun.module.cluster")
"""What of pairun a module may import."""


class Import(NamedTuple):
    """An import statement and its place (lines and columns from 1).

    Attributes:
        file: the key in `ModuleSource.files`.
        name: the imported name.
        line: of the statement.
        column: of the statement.
        relative: how to import it instead, if it is a file of the module, else None.
    """

    file: str
    name: str
    line: int
    column: int
    relative: str | None


def foreign_imports(source: ModuleSource) -> Iterator[Import]:
    """Imports of neither the standard library, `pairun.module` nor the module's files, anywhere.

    `ABSENT` parts of the standard library count as foreign. So do the module's own files if they
    are imported absolutely. Ignores what only type checkers see (``if TYPE_CHECKING:``).

    Raises:
        SyntaxError, ValueError: a file is not Python.
    """
    for file, data in source.files.items():
        if file.endswith(".py"):
            yield from _foreign_in(file, data, source)


def _foreign_in(file: str, data: bytes, source: ModuleSource) -> Iterator[Import]:
    depth = file.count("/") + 1 if source.is_folder else 0
    for node in _executed(ast.parse(data, file)):
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom) and (node.level == 0 or node.level > depth):
            names = _imported_from(node)
        else:
            continue
        for name in names:
            top = name.partition(".")[0]
            if name not in FACES and (top not in sys.stdlib_module_names or top in ABSENT):
                own = top and source.is_folder and {f"{top}.py", f"{top}/{ENTRY}"} & {*source.files}
                relative = f"from {'.' * depth}{name} import …" if own else None
                yield Import(file, name, node.lineno, node.col_offset + 1, relative)


def _imported_from(node: ast.ImportFrom) -> list[str]:
    name = "." * node.level + (node.module or "")
    return [f"{name}.{a.name}" for a in node.names] if name == "pairun" else [name]


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            for other in child.orelse:
                yield from _executed(other)
        else:
            yield from _executed(child)


_MAX_SHOWN = 40
"""Characters of a default that a message shows."""


def wrong_defaults(
    cls: type[Module], source: ModuleSource
) -> Iterator[tuple[tuple[str, int, int], str, str]]:
    """The defaults that are not of their argument's kind: `declaration`, a message, what to write.

    Args:
        cls: the module's class.
        source: its source.
    """
    for a in arguments(cls):
        if a.required or a.kind.fits(a.default):
            continue
        text = repr(a.default)
        text = text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 3]}..."
        message = f"the default of '{a.name}' must be {a.kind.name}, not {text}"
        needs_null = "add `| None` to its type, or give another default"
        remedy = needs_null if a.default is None else a.kind.remedy
        yield declaration(cls, a.name, source), message, remedy


def ruff_findings(source: ModuleSource) -> Iterator[tuple[tuple[str, int, int], str]]:
    """Undefined names and what else must fail, each with its place; none if ruff is not installed.

    ruff is part of the extra ``lint``, and its other rules are a matter of taste.
    """
    beside = os.path.join(os.path.dirname(sys.executable), "ruff")
    files = {os.path.abspath(source.place(f)): f for f in source.files if f.endswith(".py")}
    argv = [shutil.which(beside) or "ruff", "check", "--isolated", "--no-cache", *files]
    options = [f"--target-version=py3{sys.version_info.minor}", "--output-format=json"]
    try:
        done = subprocess.run(
            [*argv, *options, "--select=F63,F7,F82"], capture_output=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return
    # 1: it found something, 2: it could not check
    for each in parse_json(done.stdout) if done.returncode == 1 else ():
        at, file = each["location"], files[each["filename"]]
        yield (file, at["row"], at["column"]), f"{each['message']} ({each['code']})"


def declaration(cls: type[Module], attribute: str, source: ModuleSource) -> tuple[str, int, int]:
    """The file, line and column (from 1) of an attribute in the innermost class that declares it.

    Args:
        cls: the module's class.
        attribute: an argument, a class attribute or a method.
        source: of the module.

    Returns:
        The place of the class if none declares it; the first line of the first file if the source
        does not show that.
    """
    files = [file for file in source.files if file.endswith(".py")]
    classes = {
        node.name: (file, node)
        for file in files
        for node in ast.walk(ast.parse(source.files[file], file))
        if isinstance(node, ast.ClassDef)
    }
    found = [classes[c.__name__] for c in cls.__mro__ if c.__name__ in classes]
    for file, node in found:
        for each in node.body:
            targets = getattr(each, "targets", [getattr(each, "target", each)])
            if attribute in {getattr(t, "id", getattr(t, "name", None)) for t in targets}:
                return file, each.lineno, each.col_offset + 1
    places = ((file, node.lineno, node.col_offset + 1) for file, node in found)
    return next(places, (files[0], 1, 1))

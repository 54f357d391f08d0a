"""What a module's file imports that the user's image may not have."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from typing import NamedTuple

ABSENT = frozenset({
    "aifc", "antigravity", "audioop", "bdb", "cProfile", "cgitb", "chunk", "compileall",
    "crypt", "ctypes", "curses", "dbm", "distutils", "doctest", "ensurepip", "idlelib",
    "lib2to3", "msilib", "multiprocessing", "nis", "nturl2path", "ossaudiodev", "pdb",
    "plistlib", "profile", "pstats", "py_compile", "pydoc", "pydoc_data", "readline",
    "rlcompleter", "sndhdr", "spwd", "sqlite3", "sunau", "this", "tkinter", "trace", "turtle",
    "turtledemo", "unittest", "venv", "wave", "winreg", "xml", "xmlrpc", "zipapp",
})  # fmt: skip
"""Parts of the standard library that the program in the user's container has not."""


class Import(NamedTuple):
    """An import statement: what it names, and where it stands (from 1)."""

    name: str
    line: int
    column: int


def foreign_imports(text: str) -> Iterator[Import]:
    """Imports of neither the standard library nor `pairun.module`, wherever they stand.

    `ABSENT` parts of the standard library count as foreign.
    What only type checkers see (``if TYPE_CHECKING:``) does not count.
    """
    for node in _executed(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = _imported_from(node)
        else:
            continue
        for name in names:
            top = name.partition(".")[0]
            if name != "pairun.module" and (top not in sys.stdlib_module_names or top in ABSENT):
                yield Import(name, node.lineno, node.col_offset + 1)


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

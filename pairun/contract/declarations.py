"""Finds where a module's class declares an attribute."""

from __future__ import annotations

import ast
from typing import NamedTuple

from pairun.contract.sources import ModuleSource
from pairun.module import Module


class Declaration(NamedTuple):
    """The place of a declaration; lines and columns count from 1.

    Attributes:
        file: the key in `ModuleSource.files`.
    """

    file: str
    line: int
    column: int


def declaration(cls: type[Module], attribute: str, source: ModuleSource) -> Declaration:
    """The place of an attribute in the innermost class that declares it.

    Args:
        cls: the module's class.
        attribute: an argument or a class attribute.
        source: of the module.

    Returns:
        The first line of its first file if the source does not show the place.
    """
    names = [c.__name__ for c in cls.__mro__]
    files = [file for file in source.files if file.endswith(".py")]
    places = {
        node.name: Declaration(file, each.lineno, each.col_offset + 1)
        for file in files
        for node in ast.walk(ast.parse(source.files[file]))
        if isinstance(node, ast.ClassDef) and node.name in names
        for each in node.body
        if attribute in _declared(each)
    }
    return next((places[name] for name in names if name in places), Declaration(files[0], 1, 1))


def _declared(statement: ast.stmt) -> set[str]:
    """The names that a statement of a class body sets."""
    targets: list[ast.expr] = []
    if isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    elif isinstance(statement, ast.Assign):
        targets = statement.targets
    return {target.id for target in targets if isinstance(target, ast.Name)}

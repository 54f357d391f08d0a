"""What a module imports that the user's image may not have."""

from __future__ import annotations

import pytest

from pairun.contract.linting import Import, foreign_imports
from pairun.contract.sources import ModuleSource


def foreign(text: str, **others: str) -> list[tuple[str, str | None]]:
    """What a module's entry imports: names, and how to import them instead."""
    if not others:
        source = ModuleSource(path="m.py", files={"m.py": text.encode()}, is_folder=False)
    else:
        files = {
            "__init__.py": text,
            **{k.replace("__", "/") + ".py": v for k, v in others.items()},
        }
        encoded = {k: v.encode() for k, v in files.items()}
        source = ModuleSource(path="m", files=encoded, is_folder=True)
    return [(i.name, i.relative) for i in foreign_imports(source)]


@pytest.mark.parametrize(
    "text",
    [
        "import json, os.path",
        "from pairun.module import define",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import numpy",
    ],
)
def test_what_is_there(text: str) -> None:
    """The standard library and pairun.module are in every image."""
    assert foreign(text) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import requests", "requests"),
        ("def f():\n    import numpy.linalg", "numpy.linalg"),
        ("import sqlite3", "sqlite3"),
        ("from pairun import plan", "pairun.plan"),
        ("from .other import x", ".other"),
    ],
)
def test_what_is_not(text: str, name: str) -> None:
    """Other packages, the rest of pairun, and neighbours of a file."""
    assert foreign(text) == [(name, None)]


def test_the_files_of_a_folder_are_imported_relatively() -> None:
    """Within the folder every level may be named; beyond it, and absolutely, is foreign."""
    inner = "from ..waiting import x\nfrom . import y\nfrom ...cmd import Cmd\nimport waiting\n"
    assert foreign("from .waiting import x", waiting="", inner__a=inner) == [
        ("...cmd", None),
        ("waiting", "from ..waiting import …"),
    ]
    assert foreign("import waiting", waiting="") == [("waiting", "from .waiting import …")]


def test_the_place_is_told() -> None:
    """An import is found in its file, line and column."""
    files = {"__init__.py": b"", "a.py": b"\nif 1:\n    import numpy\n"}
    (numpy,) = foreign_imports(ModuleSource(path="m", files=files, is_folder=True))
    assert numpy == Import("a.py", "numpy", 3, 5, None)

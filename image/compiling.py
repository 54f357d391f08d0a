"""Python's modules as code for the image, small and the same in every build; files.py calls it.

Run it with ``-X no_debug_ranges``: columns serve to underline a part of a source line in a trace, and
most source lines are not in the image.
"""

from __future__ import annotations

import ast
import compileall
import glob
import importlib.util
import marshal
import os
import py_compile
import shutil
import sys
import zipfile
from collections.abc import Iterator, Sequence

UNCHECKED = py_compile.PycInvalidationMode.UNCHECKED_HASH
"""A file that nobody may change needs no comparison of times at each start (PEP 552)."""

ARCHIVE_PATH = """\
import os

# The package stands in the archive beside it, in a tenth of the space.
__path__ = [os.path.join(os.path.dirname(os.path.dirname(__file__)), {archive!r}, {name!r})]
"""
"""What stands before the text of a package's ``__init__`` whose rest is in an archive."""


def compile_beside(folder: str, shown: str) -> None:
    """Compile a folder, and keep its texts: their lines stand in traces.

    Args:
        folder: where the texts are.
        shown: the folder's path in the image.
    """
    if not compileall.compile_dir(folder, ddir=shown, quiet=1, invalidation_mode=UNCHECKED):
        sys.exit(f"image: {folder} cannot be compiled")


def compile_alone(folder: str, shown: str, kept: Sequence[str] = ()) -> None:
    """Compile a folder, and keep only the code, without docstrings.

    Args:
        folder: where the texts are.
        shown: the folder's path in the image.
        kept: beginnings of lines of docstrings that the code needs.
    """
    for path in sorted(files_below(folder)):
        if path.endswith(".py"):
            compile_file(path, os.path.join(shown, os.path.relpath(path, folder)), kept)
        elif path.endswith((".pyi", ".pyx", ".c")):
            os.remove(path)


def compile_single_files(site: str, shown: str) -> None:
    """Compile the packages that are one file."""
    for path in sorted(glob.glob(os.path.join(site, "*.py"))):
        compile_file(path, f"{shown}/{os.path.basename(path)}")


def compile_file(path: str, shown: str, kept: Sequence[str] = ()) -> None:
    """Replace a module's text by its code; a text that is no Python of this version stays."""
    if os.path.islink(path):
        os.symlink(f"{os.readlink(path)}c", f"{path}c")
        os.remove(path)
        return
    with open(path, "rb") as source:
        text = source.read()
    try:
        tree = ast.parse(text, path)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        shorten_docstring(node, kept)
    code = compile(tree, shown, "exec", dont_inherit=True)
    # A file of code as PEP 552 describes it: bit 0 says that it has a hash, bit 1 that Python compares it.
    header = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little")
    write(f"{path}c", header + importlib.util.source_hash(text) + marshal.dumps(code))
    os.remove(path)


def shorten_docstring(node: ast.AST, kept: Sequence[str]) -> None:
    """Leave out a docstring, except for its lines that begin with one of these."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    if not isinstance(node, documented) or ast.get_docstring(node, clean=False) is None:
        return
    first = node.body[0]
    assert isinstance(first, ast.Expr)
    assert isinstance(first.value, ast.Constant)
    lines = [line.strip() for line in first.value.value.splitlines()]
    if lines := [line for line in lines if kept and line.startswith(tuple(kept))]:
        first.value.value = "\n".join(lines)
    elif isinstance(node, ast.Module):
        del node.body[0]
    else:
        node.body[0] = ast.copy_location(ast.Pass(), first)


def put_into_archive(site: str, name: str, shown: str, kept: Sequence[str] = ()) -> None:
    """Put a package's code into a zip file, which Python imports from (zipimport).

    Args:
        site: the folder of packages.
        name: the package.
        shown: the folder's path in the image.
        kept: as for `compile_alone`.
    """
    folder, archive = os.path.join(site, name), f"{name}.zip"
    with open(os.path.join(folder, "__init__.py"), encoding="utf-8") as f:
        first = ARCHIVE_PATH.format(archive=archive, name=name) + f.read()
    compile_alone(folder, f"{shown}/{name}", kept)
    with zipfile.ZipFile(
        os.path.join(site, archive), "w", zipfile.ZIP_DEFLATED, compresslevel=9
    ) as made:
        for path in sorted(files_below(folder)):
            entry = zipfile.ZipInfo(os.path.relpath(path, site), (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            with open(path, "rb") as content:
                made.writestr(entry, content.read())
    shutil.rmtree(folder)
    write(os.path.join(folder, "__init__.py"), first.encode())


def files_below(folder: str) -> Iterator[str]:
    """Every file below a folder."""
    for where, _, names in os.walk(folder):
        yield from (os.path.join(where, name) for name in names)


def write(path: str, content: bytes, mode: int = 0o644) -> None:
    """Write a file, with the folders that lead to it."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(content)
    os.chmod(path, mode)

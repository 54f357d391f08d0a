"""Turns Python modules into code objects that are linked into the bundle.

Runs in the bundle's own interpreter (``-S``, link.sh calls it), since marshalled code is read by the
version that wrote it, and with ``-X no_debug_ranges``: columns serve to underline a part of a source
line in a trace, and the lines are not in the bundle. Writes ``frozen.bin``, all code objects one
after the other, and ``frozen.c``, the table that CPython reads (Include/cpython/import.h, struct
_frozen).
"""

from __future__ import annotations

import _imp
import argparse
import ast
import fnmatch
import importlib.metadata
import marshal
import os
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from types import CodeType
from typing import NamedTuple

PACKAGES = ("attr", "attrs", "charset_normalizer", "idna", "jinja2", "markupsafe", "requests",
            "urllib3")  # fmt: skip
"""What pairun needs besides the standard library, in pure Python."""

PARTS_LEFT_OUT = (
    "*.__main__", "*.cli", "*.cli.*", "idna.codec", "requests.help", "urllib3.contrib.*",
    "urllib3.http2.connection",
)  # fmt: skip
"""What of them is for a command line, for other libraries, or for browsers."""

ROOTS = (
    "pairun.cli.main", "pairun.cli.runtime", "pairun.cli.tasks", "pairun.cli.summary",
    "pairun.cli.barrier", "pairun.cli.progress", "pairun.cli.rendezvous", "pairun.module.cluster",
)  # fmt: skip
NOT_FOLLOWED = ("pairun.cli.plan", "pairun.playbook.content", "pairun.playbook.drafts",
                "pairun.playbook.document.reading")  # fmt: skip
"""What ROOTS import for commands that the bundle does not have (those that read YAML)."""

IN_C = ("_pairun", "_pairun_scan")
"""pairun's own modules in C, which main.c registers."""

CONFIGURATION = (
    "build_time_vars = {'TZPATH': '/usr/share/zoneinfo:/usr/lib/zoneinfo:/etc/zoneinfo'}\n"
)
"""What Python's own configuration says of the machine; all that the standard library asks for."""

ALIGNMENT = 16


class Source(NamedTuple):
    """A module's file.

    Attributes:
        name: the module's whole name.
        path: the file.
        shown: the file's name in traces; in angle brackets, so that nothing looks for it.
        package: whether it is a package's ``__init__``.
        optimize: as for `compile`: 2 drops assertions and docstrings.
    """

    name: str
    path: str
    shown: str
    package: bool
    optimize: int

    def code(self) -> CodeType:
        """The compiled module."""
        with open(self.path, "rb") as f:
            text = f.read()
        code: CodeType = compile(
            text, self.shown, "exec", dont_inherit=True, optimize=self.optimize
        )
        return code


def main() -> None:
    """Write the two files."""
    parser = argparse.ArgumentParser()
    for name in ("lib", "packages", "root", "inside", "output"):
        parser.add_argument(f"--{name}", required=True)
    args = parser.parse_args()
    here = os.path.dirname(os.path.abspath(__file__))
    left_out = read_patterns(os.path.join(here, "left_out.txt"))
    sources = {s.name: s for s in standard_library(args.lib, left_out)}
    for package in PACKAGES:
        for source in folder(args.packages, package, optimize=2):
            if not any(fnmatch.fnmatchcase(source.name, p) for p in PARTS_LEFT_OUT):
                sources[source.name] = source
    certifi = os.path.join(here, "certifi.py")
    sources["certifi"] = Source("certifi", certifi, "<bundle/certifi.py>", False, 2)
    sources.update(pairun_sources(args.root, known=sources))
    sources.update((s.name, s) for s in runtime_modules(args.root, args.packages))
    entry = os.path.join(here, "entry.py")
    sources["pairun_bundle"] = Source("pairun_bundle", entry, "<bundle/entry.py>", False, 0)
    codes = {name: source.code() for name, source in sources.items()}
    text = inside(args.inside, args.packages)
    codes["pairun_bundle_inside"] = compile(text, "<inside>", "exec")
    configuration = sysconfig._get_sysconfigdata_name()  # type: ignore[attr-defined]
    codes[configuration] = compile(CONFIGURATION, "<configuration>", "exec")
    packages = {name for name, source in sources.items() if source.package}
    write(args.output, codes, packages)


# --- which modules ---


def read_patterns(path: str) -> list[str]:
    """The patterns of a file, without comments."""
    with open(path, encoding="utf-8") as f:
        return [word for line in f for word in line.partition("#")[0].split()]


def standard_library(lib: str, left_out: list[str]) -> Iterator[Source]:
    """Every module of the standard library but those left out and those CPython freezes itself."""
    skipped = set(_imp._frozen_module_names())  # type: ignore[attr-defined]
    for source in folder(lib, "", optimize=2):
        top = source.name.partition(".")[0]
        if (
            top in sys.stdlib_module_names
            and source.name not in skipped
            and not any(fnmatch.fnmatchcase(source.name, p) for p in left_out)
        ):
            yield source


def folder(base: str, package: str, *, optimize: int) -> Iterator[Source]:
    """The modules below a folder, in the order of their names."""
    for where, folders, files in os.walk(os.path.join(base, package)):
        folders[:] = sorted(d for d in folders if d.isidentifier() and d != "__pycache__")
        for file in sorted(files):
            path = os.path.join(where, file)
            name, extension = os.path.splitext(os.path.relpath(path, base))
            if extension == ".py":
                yield source_of(name.replace(os.sep, "."), path, base, optimize)


def source_of(name: str, path: str, base: str, optimize: int) -> Source:
    """A module's source; the name may end in ``__init__``."""
    package = name.endswith(".__init__")
    shown = f"<{os.path.relpath(path, base)}>"
    return Source(name.removesuffix(".__init__"), path, shown, package, optimize)


def pairun_sources(root: str, known: Mapping[str, Source]) -> dict[str, Source]:
    """The modules of pairun that the runtime phase can reach, by what their texts import."""
    found: dict[str, Source] = {}
    todo = list(ROOTS)
    while todo:
        name = todo.pop()
        path = find(root, name)
        if path is None or name in found or name in NOT_FOLLOWED:
            continue
        suffix = ".__init__" if path.endswith("__init__.py") else ""
        found[name] = source_of(name + suffix, path, root, 0)
        todo.append(name.rpartition(".")[0])
        for imported in imports(path):
            top = imported.partition(".")[0]
            if top == "pairun":
                todo += [imported, imported.rpartition(".")[0]]
            elif top not in sys.stdlib_module_names and top not in known and top not in IN_C:
                sys.exit(f"freeze: {name} imports {imported}, which is not in the bundle")
    return dict(sorted(found.items()))


def find(root: str, name: str) -> str | None:
    """The file of a module, or None when the name is not a module's."""
    base = os.path.join(root, *name.split("."))
    return next((p for p in (base + ".py", base + "/__init__.py") if os.path.exists(p)), None)


def imports(path: str) -> Iterator[str]:
    """Every name that a file imports when it runs, wherever that stands in it."""
    with open(path, encoding="utf-8") as f:
        tree = ast.parse(f.read())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            if node.module.startswith("pairun"):
                yield from (f"{node.module}.{a.name}" for a in node.names)


def runtime_modules(root: str, packages: str) -> Iterator[Source]:
    """Built-in modules that may run in the runtime phase; pairun loads them by these names."""
    content = os.path.join(root, "modules")
    for name in names_of_runtime_modules(root, packages):
        path = os.path.join(content, name)
        if not os.path.isdir(path):
            yield module_source(root, f"{path}.py")
            continue
        for where, folders, files in os.walk(path):
            folders[:] = sorted(set(folders) - {"__pycache__"})
            for file in sorted(files):
                if not file.endswith(".py"):
                    sys.exit(f"freeze: {where}/{file}: built-in modules have no data in the bundle")
                yield module_source(root, os.path.join(where, file))


def module_source(root: str, path: str) -> Source:
    """A file of a built-in module, under the name by which pairun loads it."""
    name = os.path.splitext(os.path.relpath(path, root))[0].replace(os.sep, ".")
    return source_of(f"pairun_{name}", path, root, 0)


def names_of_runtime_modules(root: str, packages: str) -> list[str]:
    """What the modules say themselves, asked in another process.

    Marshalled code has a mark at each object that was referred to from elsewhere: what is imported
    in this process would show in the output.
    """
    reading, writing = os.pipe()
    if os.fork() == 0:
        sys.path[:0] = [root, packages]
        from pairun.contract.loading import load_module
        from pairun.contract.sources import module_paths

        paths = module_paths(os.path.join(root, "modules"))
        names = [n for n, path in paths.items() if "runtime" in load_module(n, path).phases]
        os.write(writing, " ".join(names).encode())
        os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as f:
        names = f.read().split()
    if os.wait()[1] != 0 or not names:
        sys.exit("freeze: the built-in modules cannot be loaded")
    return names


# --- what is written ---


def inside(versions: str, packages: str) -> str:
    """The source of a module with the parts of the bundle: ``PARTS``, lines "NAME VERSION"."""
    with open(versions, encoding="utf-8") as f:
        parts = f.read().splitlines()
    # of these files, not of what this interpreter could import
    for each in importlib.metadata.distributions(path=[packages]):
        parts.append(f"{each.metadata['Name'].lower()} {each.version}")
    return f"PARTS = {tuple(sorted(parts))!r}\n"


def write(output: str, codes: Mapping[str, CodeType], packages: set[str]) -> None:
    """Write the code objects and their table."""
    data, rows = bytearray(), []
    for name, code in sorted(codes.items()):
        data += bytes(-len(data) % ALIGNMENT)
        marshalled = marshal.dumps(code)
        rows.append(
            f'    {{"{name}", frozen_code + {len(data)}, {len(marshalled)}, {int(name in packages)}}},'
        )
        data += marshalled
    with open(os.path.join(output, "frozen.bin"), "wb") as f:
        f.write(data)
    with open(os.path.join(output, "frozen.c"), "w", encoding="utf-8") as f:
        f.write(TABLE % "\n".join(rows))
    print(f"{len(rows)} modules, {len(data)} bytes")


TABLE = """\
#include <Python.h>

__asm__(".section .rodata\\n.balign 16\\n.global frozen_code\\nfrozen_code:\\n"
        ".incbin \\"frozen.bin\\"\\n.previous\\n");
extern const unsigned char frozen_code[];

const struct _frozen bundle_modules[] = {
%s
    {0},
};
"""

if __name__ == "__main__":
    main()

"""``pairun new``: write a commented, valid example of a job, plugin, module or content root."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping
from typing import NamedTuple

import pairun.module
from pairun.errors import PairunError, Problem
from pairun.job.protocol import NAME_PATTERN
from pairun.playbook.content import Content, open_content
from pairun.playbook.keywords import KEYWORDS

_TEXTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "starts")
_NAME_OF_CONTENT = r"[a-z][a-z0-9_]*"
"""Valid names of modules and plugins: each is also a valid key, file name and class name."""

_TEST_NAMES = ("FakeWorld", "Path", "RealWorld")
"""The names that a module's test imports besides `pairun.module`."""


class NewKind(NamedTuple):
    """One kind of start for `pairun new`.

    Attributes:
        name: the default name.
        files: path to the text of the file; both are relative.
        next_steps: the next commands to enter, and what else to do.
    """

    name: str
    files: Mapping[str, str]
    next_steps: tuple[str, ...]


NEW_KINDS: Mapping[str, NewKind] = {
    "job": NewKind(
        "job",
        {"@NAME@.yaml": "job.yaml"},
        ("pairun --dry-run @ROOT@@NAME@.yaml", "pairun run @ROOT@@NAME@.yaml"),
    ),
    "plugin": NewKind(
        "my_plugin",
        {"plugin_specs/@NAME@.yaml": "plugin.yaml", "examples/@NAME@.yaml": "plugin_job.yaml"},
        (
            "pairun lint @ROOT@plugin_specs/@NAME@.yaml",
            "pairun run --root @HERE@ @ROOT@examples/@NAME@.yaml",
        ),
    ),
    "module": NewKind(
        "my_module",
        {"modules/@NAME@.py": "module.py.txt", "tests/test_@NAME@.py": "module_test.py.txt"},
        (
            "pairun lint @ROOT@modules/@NAME@.py",
            "python3 -m pytest @ROOT@tests/test_@NAME@.py",
            "add @NAME@ to job_may.insert in @ROOT@playbooks/policy.yaml, so that jobs may use it",
        ),
    ),
    "root": NewKind(
        "cluster",
        {
            "@NAME@/playbooks/init.yaml": "root_init.yaml",
            "@NAME@/playbooks/runtime.yaml": "root_runtime.yaml",
            "@NAME@/playbooks/policy.yaml": "root_policy.yaml",
            "@NAME@/Dockerfile": "root_dockerfile",
        },
        ("pairun lint @ROOT@@NAME@", "pairun --dry-run --root @ROOT@@NAME@ JOB"),
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("kind", choices=tuple(NEW_KINDS), metavar="|".join(NEW_KINDS),
                        help="what to create")  # fmt: skip
    defaults = ", ".join(f"{kind.name} for a {name}" for name, kind in NEW_KINDS.items())
    parser.add_argument("name", nargs="?", metavar="NAME",
                        help=f"its name; for a root, its folder (default: {defaults})")  # fmt: skip
    parser.add_argument("--root", metavar="DIR", default="",
                        help="where to write the files; for a plugin or module, its content "
                        "root (default: the current folder)")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Write the files; print their names and the next commands."""
    files, next_steps = write_start(args.kind, args.name, args.root, open_content([], os.environ))
    for file in files:
        print(f"wrote {file}")
    for step in next_steps:
        print(f"next: {step}")
    return 0


def write_start(
    kind: str, name: str | None, root: str, content: Content
) -> tuple[list[str], list[str]]:
    """Write a start. Replaces no file: if one exists, nothing is written.

    Args:
        kind: a key of `NEW_KINDS`.
        name: of the job, plugin or module; of a root, its folder. None for the kind's default.
        root: the folder below which to write; empty for the current folder. A plugin or a module is
            added to the content root there.
        content: the content roots; their names are taken.

    Returns:
        The files, and the next commands to enter.

    Raises:
        PairunError: the name is invalid (PR801), or a file exists or cannot be written (PR812).
    """
    start = NEW_KINDS[kind]
    name = start.name if name is None else name
    _check_name(kind, name, content)
    below = os.path.join(root, "") if root else ""
    words = {
        "@NAME@": name.rstrip("/"),
        "@CLASS@": _class_name(name),
        "@ROOT@": below,
        "@HERE@": root or ".",
    }
    texts = {below + _filled(path, words): _text(text, words) for path, text in start.files.items()}
    _write(texts)
    return list(texts), [_filled(step, words) for step in start.next_steps]


def _class_name(name: str) -> str:
    """A module's class: `CheckDisk` for ``check_disk``; never a name that the start imports."""
    camel = "".join(part.capitalize() for part in name.split("_"))
    return f"{camel}Module" if camel in {*pairun.module.__all__, *_TEST_NAMES} else camel


def _check_name(kind: str, name: str, content: Content) -> None:
    if kind == "root":
        if not name.strip("/"):
            raise _wrong_name("the folder of a content root needs a name", "cluster")
        return
    pattern = NAME_PATTERN if kind == "job" else _NAME_OF_CONTENT
    if re.fullmatch(pattern, name) is None:
        letters = "letters, digits, - and _" if kind == "job" else "a-z, 0-9 and _, a letter first"
        raise _wrong_name(f"the name of a {kind} has {letters}, not {name!r}", NEW_KINDS[kind].name)
    taken = {"plugin": content.specs, "module": content.modules}.get(kind, {})
    if name in KEYWORDS:
        raise _wrong_name(f"{name!r} is a keyword of playbooks", f"my_{name}")
    if name in taken:
        path, _ = taken[name]
        raise _wrong_name(f"the {kind} {name!r} exists already: {path}", f"my_{name}")


def _wrong_name(message: str, example: str) -> PairunError:
    return PairunError(Problem("PR801", message, hint=f"for example {example}"))


def _text(file: str, words: Mapping[str, str]) -> str:
    with open(os.path.join(_TEXTS, file), encoding="utf-8") as f:
        return _filled(f.read(), words)


def _filled(text: str, words: Mapping[str, str]) -> str:
    return re.sub("|".join(words), lambda word: words[word[0]], text)


def _write(texts: Mapping[str, str]) -> None:
    """Write all files, or none if one of them exists."""
    for path in texts:
        if os.path.lexists(path):
            hint = "choose another name, or remove the file"
            raise PairunError(Problem("PR812", f"{path} exists; nothing was written", hint=hint))
    for path, text in texts.items():
        try:
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            with open(path, "x", encoding="utf-8") as f:
                f.write(text)
        except OSError as e:
            raise PairunError(Problem("PR812", f"{path} cannot be written: {e.strerror}")) from e

"""``pairun lint``: all problems of job files, playbooks, policies, plugin specs and modules."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pairun.base.escapes import visible
from pairun.cli.options import add_roots, print_json
from pairun.errors import Problem
from pairun.report.problems import print_problems, problem_data
from pairun.review.lint import SKIPPED, lint

_SCHEMA = 1
_FORMATS = ("text", "json", "github")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("files", nargs="+", metavar="FILE",
                        help="files, or folders to check recursively; - for standard input")  # fmt: skip
    add_roots(parser, "a content root that the files are checked against")
    parser.add_argument(
        "--format",
        choices=_FORMATS,
        default="text",
        help="text (default), json, or github (workflow commands)",
    )
    parser.add_argument("--json", dest="format", action="store_const", const="json",
                        help="the same as --format json")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Check the files; returns 0 without errors, else 1."""
    problems, files = lint(args.files, args.root, args.vault)
    if args.format == "text":
        _print_text(problems, files, args)
    else:
        _print_data([problem_data(p, args.vault) for p in problems], files, args.format)
    return _exit_code(problems)


def _print_text(
    problems: Sequence[Problem], files: Mapping[str, str], args: argparse.Namespace
) -> None:
    has_folder = any(map(os.path.isdir, args.files))
    for file, kind in files.items():
        if has_folder or kind.startswith(SKIPPED):
            print(f"{file}: {kind}")
    if problems:
        sys.stdout.flush()
        print_problems(problems, args.vault)
        warnings = len(problems)
        if not _exit_code(problems):
            print(f"{warnings} warning{'s' * (warnings != 1)}", file=sys.stderr)
    else:
        linted = [kind for kind in files.values() if not kind.startswith(SKIPPED)]
        print(f"{len(linted)} file{'s' * (len(linted) != 1)}: no problems")


def _print_data(problems: Sequence[Mapping[str, Any]], files: Mapping[str, str], form: str) -> None:
    """Print masked problems in one of the formats for programs."""
    if form == "github":
        for line in workflow_commands(problems):
            print(line)
    else:
        kinds = [{"file": file, "kind": kind} for file, kind in files.items()]
        print_json({"schema": _SCHEMA, "files": kinds, "problems": problems})


def _exit_code(problems: Iterable[Problem]) -> int:
    return 1 if any(p.severity == "error" for p in problems) else 0


def workflow_commands(problems: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield one line for each problem.

    The escapes are those of ``@actions/core`` (packages/core/src/command.ts).

    Args:
        problems: the masked data that `problem_data` returns.
    """
    for p in problems:
        properties = {"file": p["file"], "line": p["line"], "col": p["column"], "title": p["id"]}
        if p["file"] in (None, "-"):
            properties = {"title": p["id"]}
        listed = ",".join(f"{k}={_property(v)}" for k, v in properties.items() if v)
        lines = [p["message"], *([f"help: {p['hint']}"] if p["hint"] else [])]
        text = "\n".join(visible(line) for line in lines)
        yield f"::{p['severity']} {listed}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: object) -> str:
    return _data(str(value)).replace(":", "%3A").replace(",", "%2C")

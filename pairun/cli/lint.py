"""``pairun lint``: check job files, playbooks, policies and plugin specs, all problems at once."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator

from pairun.cli.common import print_problems
from pairun.errors import PairunError, Problem, Problems
from pairun.playbook.checking import Ids, violations
from pairun.playbook.content import Content, open_content
from pairun.playbook.drafts import draft_task
from pairun.playbook.effective import Layers
from pairun.playbook.policy import SCHEMA as POLICY_SCHEMA
from pairun.playbook.reading import Node, decode, load_bytes, read_text
from pairun.playbook.specs import check_spec
from pairun.report.review import problem_data


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="- is standard input")
    parser.add_argument(
        "--root",
        action="append",
        default=[],
        metavar="DIR",
        help="a content root that the files are checked against",
    )
    parser.add_argument("--json", action="store_true", help="JSON on standard output")


def run(args: argparse.Namespace) -> int:
    """Check the files; 0 when there is no error, else 1."""
    content = open_content(args.root, os.environ)
    layers = Layers(content)
    problems = Problems()
    for path in args.files:
        problems.extend(lint(path, layers))
    if args.json:
        print(json.dumps({"schema": 1, "problems": [problem_data(p) for p in problems]}, indent=2))
    else:
        print_problems(problems)
        if not problems:
            print(f"{len(args.files)} file{'s' * (len(args.files) > 1)}: nothing to complain about")
    return 1 if problems.errors else 0


def lint(path: str, layers: Layers) -> Problems:
    """The problems of one file; what kind of file it is, its content tells."""
    problems = Problems()
    try:
        data = load_bytes(path)
        node = read_text(decode(data, path, "file"))
        keys = dict(node.items())
        if "phase" in keys:
            layers.check(node, problems)
            problems.extend(_tasks(node.get("tasks"), layers.content))
        elif "summary" in keys:
            check_spec(node, layers.content, problems)
            for phase in ("init", "runtime"):
                problems.extend(_tasks(node.get(phase), layers.content))
        elif "job_may" in keys:
            problems.extend(violations(node, POLICY_SCHEMA, Ids("PR406", "PR406", "PR406")))
        elif "job_may" not in keys:
            return _lint_job(path, layers)
    except PairunError as e:
        problems.extend(e.problems)
    return problems


def _lint_job(path: str, layers: Layers) -> Problems:
    from pairun.cli.dry_run import review_job

    return review_job(path, layers, "user", []).problems


def _tasks(tasks: Node | None, content: Content) -> Iterator[Problem]:
    """What only shows in a whole task: its module, and waits that nothing bounds."""
    problems = Problems()
    for node in tasks.elements() if tasks else ():
        if (inner := node.get("tasks")) is not None:
            yield from _tasks(inner, content)
            continue
        task = draft_task(node, content.modules, "file", problems)
        if task is None:
            continue
        bounded = node.get("timeout") or node.get("deadline")
        if node.get("retries") and not bounded:
            problems.warning(
                "PR910",
                f"the task '{task.id}' is tried again and again, and nothing bounds an attempt",
                node.place,
                "add timeout or deadline",
            )
    yield from problems

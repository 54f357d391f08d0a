"""``pairun lint``: check job files, playbooks, policies and plugin specs, all problems at once."""

from __future__ import annotations

import argparse
import json
import os

from pairun.cli.common import print_problems
from pairun.errors import PairunError, Problems
from pairun.executor.arguments import build
from pairun.playbook.checking import Ids, violations
from pairun.playbook.content import Content, open_content
from pairun.playbook.drafts import TaskDraft, draft_task
from pairun.playbook.effective import Layers
from pairun.playbook.policy import SCHEMA as POLICY_SCHEMA
from pairun.playbook.reading import Node, decode, load_bytes, read_text
from pairun.playbook.specs import check_spec
from pairun.playbook.template import is_template
from pairun.redaction import Redactor
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
    try:
        layers = Layers(open_content(args.root, os.environ))
        found = [lint(path, layers) for path in args.files]
    except PairunError as e:
        # The content roots themselves are not in order.
        found = [(Problems(), Redactor())]
        found[0][0].extend(e.problems)
    if args.json:
        shown = [problem_data(p, redactor) for problems, redactor in found for p in problems]
        print(json.dumps({"schema": 1, "problems": shown}, indent=2, ensure_ascii=False))
    else:
        for problems, redactor in found:
            print_problems(problems, redactor=redactor)
        if not any(problems for problems, _ in found):
            print(f"{len(args.files)} file{'s' * (len(args.files) > 1)}: nothing to complain about")
    return 1 if any(problems.errors for problems, _ in found) else 0


def lint(path: str, layers: Layers) -> tuple[Problems, Redactor]:
    """The problems of one file, and what of it must not be shown.

    What kind of file it is, its content tells.
    """
    problems = Problems()
    try:
        data = load_bytes(path)
        node = read_text(decode(data, path, "file"))
    except PairunError as e:
        problems.extend(e.problems)
        return problems, Redactor()
    if node.get("phase") is not None:
        layers.check(node, problems)
        problems.extend(
            check_tasks(node.get("tasks"), str(node.value["phase"].value), layers.content)
        )
    elif node.get("summary") is not None:
        check_spec(node, layers.content, problems)
        for phase in ("init", "runtime"):
            problems.extend(check_tasks(node.get(phase), phase, layers.content))
    elif node.get("job_may") is not None:
        problems.extend(violations(node, POLICY_SCHEMA, Ids("PR406", "PR406", "PR406")))
    else:
        return _lint_job(path, data, layers)
    return problems, Redactor()


def _lint_job(path: str, data: bytes, layers: Layers) -> tuple[Problems, Redactor]:
    from pairun.cli.dry_run import review_loaded
    from pairun.job.jobfile import read_job

    try:
        job, problems = read_job(read_text(decode(data, path, "job"), "js"))
    except PairunError as e:
        problems = Problems()
        problems.extend(e.problems)
        return problems, Redactor()
    review = review_loaded(path, job, problems, layers, [])
    return review.problems, review.redactor


def check_tasks(tasks: Node | None, phase: str, content: Content) -> Problems:
    """What only shows in a whole task: its module, its arguments, and waits that nothing bounds."""
    problems = Problems()
    for node in tasks.elements() if tasks else ():
        if (inner := node.get("tasks")) is not None:
            problems.extend(check_tasks(inner, phase, content))
            continue
        task = draft_task(node, content.modules, "file", problems)
        if task is None:
            continue
        _check_arguments(task, phase, content, problems)
        handlers = node.get("on_exit")
        for each in handlers.elements() if handlers else ():
            if handler := draft_task(each, content.modules, "file", problems):
                _check_arguments(handler, phase, content, problems)
        if node.get("retries") and not (node.get("timeout") or node.get("deadline")):
            problems.warning(
                "PR910",
                f"the task '{task.id}' is tried again and again, and nothing bounds an attempt",
                node.place,
                "add timeout or deadline",
            )
    return problems


def _check_arguments(task: TaskDraft, phase: str, content: Content, problems: Problems) -> None:
    try:
        cls = content.module(task.module)
    except PairunError as e:
        problems.extend(e.problems)
        return
    if phase not in cls.phases:
        problems.error(
            "PR212",
            f"the module '{task.module}' does not run in {phase}",
            task.args.key or task.args.place,
            f"it runs in {' and '.join(cls.phases)}",
        )
    values = task.args.plain()
    pending = frozenset(k for k, n in task.args.items() if _has_expressions(n))
    for p in build(cls, values, pending)[1]:
        at = task.args.at(p.path) or task.args
        place = at.key or at.place if p.id in ("PR604", "PR606") else at.place
        problems.error(p.id, f"{task.module}: {p.message}", place, p.hint)


def _has_expressions(node: Node) -> bool:
    children = [*node.elements(), *(child for _, child in node.items())]
    return is_template(node.value) or any(map(_has_expressions, children))

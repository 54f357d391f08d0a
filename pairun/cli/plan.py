"""``pairun plan JOB…`` and ``pairun --dry-run JOB…``: what runs, in which order, with which values, and who set each."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from typing import IO

from pairun.cli.options import add_roots, print_json, refuse
from pairun.errors import PairunError, Problem
from pairun.kube.labels import LABEL_VALUE
from pairun.openpai.enginelayers import RECORD
from pairun.playbook.content import Content, open_content
from pairun.playbook.document.texts import decode
from pairun.playbook.effective import Layers
from pairun.report.jobreview_text import print_review
from pairun.report.problems import print_problems
from pairun.report.review_data import refused_data, reviews_data, setting_line
from pairun.report.review_text import ReviewText
from pairun.review.jobreview import (
    JobReview,
    Settings,
    loaded,
    read_settings,
    review_data,
    review_pod,
)
from pairun.review.why import default_of, no_such_setting, settings_of
from pairun.secrets.vault import Vault


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("jobs", nargs="*", metavar="JOB", help="job files; - for standard input")
    add_roots(parser, "a content root: a cluster's playbooks, policy, modules, plugins")
    parser.add_argument("--init-config", metavar="FILE",
                        help="init plugins, instead of INIT_CONFIG or init_plugins.yaml")  # fmt: skip
    parser.add_argument("--runtime-config", metavar="FILE",
                        help="review a plain Pod with these commands and plugins")  # fmt: skip
    parser.add_argument("--role", action="append", default=[], help="this role only")
    parser.add_argument("--user", default="user", help="who submits the job")
    parser.add_argument("--full", action="store_true", help="show every task with every value")
    parser.add_argument("--html", metavar="FILE",
                        help="write the review as one HTML file (- for standard output)")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--why",
        metavar="ID.PATH",
        action="append",
        default=[],
        help="show who set a value, such as git.args.depth or barrier.retries",
    )
    parser.add_argument("--exit-code", action="store_true",
                        help="exit 2 if something would change")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Review the jobs; returns 0 if valid, 1 for errors, 2 with ``--exit-code`` for changes."""
    try:
        _check_usage(args)
        content = open_content(args.root, os.environ)
        reviews = _reviews(args, Layers(content), args.vault)
    except PairunError as e:
        return refuse(e, args, refused_data)
    if args.json:
        print_json(reviews_data(reviews))
    elif args.html:
        _write_page(args.html, reviews, content)
    else:
        _print_text(args, reviews, content)
    if any(r.problems.errors for r in reviews):
        return 1
    return 2 if args.exit_code and any(r.changes for r in reviews) else 0


def _check_usage(args: argparse.Namespace) -> None:
    if not (args.jobs or args.init_config or args.runtime_config):
        hint = "pairun plan JOB; - is standard input"
        raise PairunError(Problem("PR801", "a review needs a job file", hint=hint))
    if not re.fullmatch(LABEL_VALUE, args.user):
        raise PairunError(Problem("PR801", f"--user '{args.user}' is not valid in Kubernetes"))
    if args.json and args.why:
        hint = "omit --why: the JSON has every override"
        raise PairunError(Problem("PR801", "--why has no JSON form", hint=hint))
    if args.html and (args.json or args.why or args.full):
        hint = "the page has every value, and who set it"
        raise PairunError(
            Problem("PR801", "--html cannot be combined with --json, --why, --full", hint=hint)
        )


def _reviews(args: argparse.Namespace, layers: Layers, vault: Vault) -> list[JobReview]:
    # Report unreadable settings before any job is reviewed.
    settings = read_settings(args.init_config)
    reviews = [r for path in args.jobs for r in _reviews_of(path, args, layers, settings, vault)]
    if args.runtime_config or not args.jobs:
        reviews.append(review_pod(args.runtime_config, layers, args.user, settings, vault=vault))
    return reviews


def _reviews_of(
    path: str, args: argparse.Namespace, layers: Layers, settings: Settings, vault: Vault
) -> list[JobReview]:
    """The review of a job file, or of every Pod of an injected manifest."""
    user: str = args.user
    data = loaded(path)
    try:
        if isinstance(data, bytes) and RECORD.encode() in data:
            from pairun.review.injectedreview import review_injected

            source = decode(data, path, "manifest")
            return review_injected(source, layers, user, settings, vault=vault)
    except PairunError as e:
        data = e
    return [review_data(data, path, layers, user, args.role, settings, vault=vault)]


def _print_text(args: argparse.Namespace, reviews: Sequence[JobReview], content: Content) -> None:
    for review in reviews:
        if args.role and review.job is not None and not review.plans:
            # No role has this name: print only the error below.
            continue
        if args.why:
            print_why(review, args.why, content, sys.stdout)
        else:
            print_review(review, content, sys.stdout, full=args.full)
    for review in reviews:
        # --why answers a question; warnings belong to the review of the whole job.
        print_problems(review.problems.errors if args.why else review.problems, review.vault)


def _write_page(file: str, reviews: Sequence[JobReview], content: Content) -> None:
    from pairun.report.page.document import write_page
    from pairun.report.page.reviewpage import review_page

    write_page(file, review_page(reviews, content))
    for review in reviews:
        print_problems(review.problems, review.vault)


def print_why(review: JobReview, paths: list[str], content: Content, stream: IO[str]) -> None:
    """Print who set some values; reports a problem for a path that is no setting.

    Args:
        review: the review of a job.
        paths: task ids with keys, such as ``git.args.depth``.
        stream: the stream to print to.
    """
    text = ReviewText(stream, review.vault)
    for path in paths:
        printed = set()
        for plan in review.plans:
            pod = review.pods[plan.role.name]
            settings = settings_of(plan, pod, path, review.problems)
            chain = tuple(
                setting_line(path, setter, review.vault) + (", refused" if refused else "")
                for setter, refused in settings
            )
            if not chain and (default := default_of(plan, path, content)):
                chain = (f"{default.text}  ← {default.declared_by}",)
            if not chain or chain in printed:
                continue
            printed.add(chain)
            text.wrapped(f"{path} (role {plan.role.name})")
            # The parameters that the text below them uses are at one level.
            used = sum(bool(setter.source) for setter, _ in settings)
            for n, line in enumerate(chain):
                depth = max(0, n - max(0, used - 1))
                text.wrapped(("└ " if depth else "") + line, "  " + "  " * depth, hang="  ")
        # A job without plans is not valid, and its errors say why.
        if not printed and review.plans:
            review.problems.extend([no_such_setting(review, path, content)])

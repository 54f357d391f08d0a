"""Who set a value, as text for people: ``pairun --dry-run --why``."""

from __future__ import annotations

from typing import IO

from pairun.playbook.content import Content
from pairun.report.jobreview_text import setting_line
from pairun.report.review_text import ReviewText
from pairun.review.jobreview import JobReview
from pairun.review.why import default_of, no_such_setting, settings_of


def print_why(review: JobReview, paths: list[str], content: Content, stream: IO[str]) -> None:
    """Print who set some values; reports a problem for a path that is no setting.

    Args:
        review: the review of a job.
        paths: task ids with keys, such as ``git.args.depth``.
        content: the content roots.
        stream: the stream to print to.
    """
    text = ReviewText(stream, review.vault)
    for path in paths:
        printed = set()
        for plan in review.plans:
            pod = review.pods[plan.role.name]
            settings = settings_of(plan, pod, path, review.problems)
            chain = tuple(
                setting_line(path, each.value, each.place, review.vault)
                + (", refused" if each.refused else "")
                for each in settings
            )
            if not chain and (default := default_of(plan, path, content)):
                chain = (f"{default.text}  ← {default.declared_by}",)
            if not chain or chain in printed:
                continue
            printed.add(chain)
            text.wrapped(f"{path} (role {plan.role.name})")
            for n, line in enumerate(chain):
                text.wrapped(("└ " if n else "") + line, "  " + "  " * n, hang="  ")
        # A job without plans is not valid, and its errors say why.
        if not printed and review.plans:
            review.problems.extend([no_such_setting(review, path, content)])

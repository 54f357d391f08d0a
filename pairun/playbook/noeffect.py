"""Reports a combination of keywords that has no effect as an error, if one layer wrote both."""

from __future__ import annotations

from collections.abc import Mapping

from pairun.base.durations import parse_duration
from pairun.errors import Problems
from pairun.playbook.document.reading import Node
from pairun.playbook.drafts import TaskDraft


def check_effect(draft: TaskDraft, keywords: Mapping[str, Node], problems: Problems) -> None:
    """Report keywords of a task that have no effect.

    Args:
        draft: the task.
        keywords: its keywords without values of a wrong type, which are already reported.
        problems: takes every error.
    """
    written = {name: node for name, node in keywords.items() if node.value is not None}

    def report(name: str, message: str, hint: str | None = None) -> None:
        node = written[name]
        problems.error("PR207", message, node.key or node.place, hint)

    retries = written.get("retries")
    # An invalid `retries` is already reported; keywords that need it are no further error.
    unusable = "retries" not in keywords and draft.node.get("retries") is not None
    if not unusable and (retries is None or retries.value == 0):
        for name in ("delay", "retry_on"):
            if name in written and _same_layer(written[name], retries):
                report(name, f"'{name}' has no effect without retries", "add retries, or remove it")
    policy, codes = written.get("failure_policy"), written.get("exit_codes")
    ignored = (policy.value if policy else draft.failure_policy) == "ignore"
    if codes and ignored and _same_layer(codes, policy):
        report(
            "exit_codes",
            "'exit_codes' has no effect: a failure of this task is ignored",
            "remove it, or set failure_policy: fail",
        )
    timeout, deadline = written.get("timeout"), written.get("deadline")
    if timeout and deadline and _same_layer(timeout, deadline):
        timeout_s, deadline_s = (
            parse_duration(str(timeout.value)),
            parse_duration(str(deadline.value)),
        )
        if timeout_s is not None and deadline_s is not None and timeout_s > deadline_s:
            report(
                "timeout",
                "'timeout' has no effect: the deadline of the whole task is shorter",
            )


def _same_layer(one: Node, other: Node | None) -> bool:
    return other is None or one.place.source is other.place.source

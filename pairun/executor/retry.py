"""Decides whether and when a failed task is retried: all of pairun's retries are decided here."""

from __future__ import annotations

import time

import attrs

from pairun.contract.results import Report
from pairun.executor.limits import Limits
from pairun.module import format_duration
from pairun.plan import Task

MAX_DELAY_S = 300.0
MAX_RETRY_AFTER_S = 3600.0


@attrs.frozen
class Retry:
    """A further attempt: the seconds until it starts, and the reason for people."""

    delay_s: float
    because: str


def retry_or_report(task: Task, attempts: int, report: Report, limits: Limits) -> Retry | Report:
    """The next attempt after a failed one, or the report with which the task ends.

    Args:
        task: the task.
        attempts: number of attempts so far.
        report: of the last one.
        limits: the task's time.
    """
    if attempts > task.retries or report.kind not in task.retry_on:
        return report
    left_s = None if limits.deadline is None else limits.deadline - time.monotonic()
    delay_s = retry_delay(task, attempts, report.retry_after_s, left_s)
    if report.retry_within_s is not None:
        soon_s = limits.retry_until(report.retry_within_s) - time.monotonic()
        if soon_s <= 0:
            within = format_duration(report.retry_within_s)
            return report._replace(
                message=f"{report.message} (no further attempt: retried for {within})"
            )
        # Put the last attempt at the end of the time.
        delay_s = min(delay_s, soon_s)
    request = "" if report.retry_after_s is None else _request(report.retry_after_s)
    if left_s is not None and delay_s >= left_s:
        return report._replace(
            message=f"{report.message} (no further attempt: {request and request + ', and '}"
            f"the next would begin after the task's deadline of {limits.whole})",
        )
    # The exit code of a plugin script shows no kind.
    kind = f" ({report.kind})" if report.exit_code is None else ""
    failed = f"attempt {attempts} of {task.retries + 1} failed{kind}: {report.message}"
    return Retry(delay_s, f"{failed}{request and f' ({request})'}")


def retry_delay(
    task: Task, attempts: int, retry_after_s: float | None = None, left_s: float | None = None
) -> float:
    """Seconds to wait before the next attempt: exponential with full jitter.

    A server's ``Retry-After`` (RFC 9110, 10.2.3) is the minimum. The jitter is added to it, because
    ten thousand Pods get the same number of seconds.

    Args:
        task: the task.
        attempts: number of attempts so far, at least one.
        retry_after_s: the server's ``Retry-After`` in seconds.
        left_s: seconds until the task's deadline; the jitter alone never exceeds it.
    """
    # Imported here: otherwise it would draw a new seed in every forked child.
    import random

    # The exponent is bounded: a float would overflow.
    longest = min(MAX_DELAY_S, task.delay_s * 2.0 ** min(attempts - 1, 64))
    if retry_after_s is None:
        return random.uniform(0, longest)  # noqa: S311 - jitter
    least = max(0.0, min(retry_after_s, MAX_RETRY_AFTER_S))
    # The jitter is at least half of the server's time, even if the task's delay is short.
    spread = max(longest, min(least / 2, MAX_DELAY_S))
    if left_s is not None and least < left_s:
        spread = min(spread, (left_s - least) / 2)
    return least + random.uniform(0, spread)  # noqa: S311 - jitter


def _request(seconds: float) -> str:
    """The server's request, for people."""
    words = f"the server requests a wait of {format_duration(max(0.0, seconds))}"
    if seconds > MAX_RETRY_AFTER_S:
        words += f", and pairun waits at most {format_duration(MAX_RETRY_AFTER_S)}"
    return words

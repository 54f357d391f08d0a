"""The table of exit codes in the formats of platforms that retry jobs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pairun.diagnose.classes import CLASSES, EXIT_CODES
from pairun.diagnose.signals import CERTAIN
from pairun.diagnose.table import WEIGHTS
from pairun.diagnose.weighing import ADVISED
from pairun.errors import PairunError, Problem
from pairun.job.goregex import from_go
from pairun.playbook.rules import Rules

PERMANENT = frozenset(
    {127, 132, 135, 136, 141, 220, 221, 222, 224, 225, 226, *range(228, 236), 249}
)
"""Exit codes of the user's container that a retry does not change.

OpenPAI's table calls them permanent; it has 220 for a command that the shell did not find, which is
127 without an exit spec. 130 and 143 are not here: a signal does not tell who sent it.
"""
TRANSIENT = frozenset({223})
"""Exit codes that may be retried without counting: a memory error of the GPU.

137 and 143 are not here: uncounted retries are unlimited, and a command that is killed for its
memory would begin again forever. An eviction or preemption has a Pod condition instead.
"""


def codes(own: Mapping[str, int]) -> tuple[list[int], list[int]]:
    """Exit codes that must not be retried, and those to retry without counting.

    This table decides for `pairun manifest`. The platform counts every other code like any failure.

    Args:
        own: the cluster's exit codes for classes of failure; they outrank OpenPAI's.
    """
    classes: dict[int, set[str]] = {}
    for klass, code in own.items():
        classes.setdefault(code, set()).add(klass)
    give_up, uncounted = set(PERMANENT - classes.keys()), set(TRANSIENT - classes.keys())
    for code, those in classes.items():
        # The shell's meaning of a code stays beside the cluster's.
        shells, weight = EXIT_CODES.get(code, ("", 0))
        kinds = [CLASSES[k] for k in (those | {shells} if weight >= ADVISED else those)]
        if all(k.retry in ("after_fix", "never") for k in kinds):
            give_up.add(code)
        elif all(k.fault in ("platform", "hardware") for k in kinds):
            uncounted.add(code)
    return sorted(give_up), sorted(uncounted)


DISRUPTED: dict[str, Any] = {
    "action": "Ignore",
    "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
}
"""The rule of a podFailurePolicy for an eviction or a preemption."""


def on_exit(action: str, container: str, values: list[int]) -> dict[str, Any]:
    """A rule of a podFailurePolicy for some exit codes of a container."""
    when = {"containerName": container, "operator": "In", "values": values}
    return {"action": action, "onExitCodes": when}


def pod_failure_policy(rules: Rules, container: str) -> dict[str, Any]:
    """A Job's policy (Kubernetes, "Handling retriable and non-retriable pod failures").

    Args:
        rules: the rules of all content roots.
        container: the container whose exit codes count; those of pairun-init mean something else.
    """
    give_up, uncounted = codes(rules.exit_codes)
    return {
        "podFailurePolicy": {
            "rules": [
                DISRUPTED,
                *(
                    on_exit(action, container, values)
                    for action, values in (("FailJob", give_up), ("Ignore", uncounted))
                    if values
                ),
            ]
        }
    }


def jobset_failure_policy(rules: Rules, container: str) -> dict[str, Any]:
    """A JobSet's policy (JobSet, "Failure policy"), and the Pod failure policy of its Jobs."""
    return {
        "failurePolicy": {
            "maxRestarts": 3,
            "rules": [
                {
                    "name": "giveUp",
                    "action": "FailJobSet",
                    "onJobFailureReasons": ["PodFailurePolicy", "DeadlineExceeded"],
                }
            ],
        },
        **pod_failure_policy(rules, container),
    }


def exit_spec(rules: Rules, _container: str) -> list[dict[str, Any]]:
    """OpenPAI's exit spec for the classes that have an exit code.

    The first match wins, so the more certain classes come first. The spec omits rules about
    neighbouring lines, and patterns that Go does not support.
    """
    entries: dict[str, tuple[int, list[dict[str, Any]]]] = {}
    for sample in rules.samples.values():
        klass = sample.data["class"]
        weight = sample.data.get("weight", WEIGHTS[sample.data["role"]])
        # An exit spec cannot express conditions on neighbouring lines.
        if (
            klass not in rules.exit_codes
            or weight < CERTAIN
            or {"near", "unless"} & set(sample.data)
        ):
            continue
        regexes = [p["regex"] for p in sample.data["patterns"] if _is_go_regex(p["regex"])]
        before, patterns = entries.get(klass, (0, []))
        patterns += [{"userLogRegex": each} for each in regexes]
        entries[klass] = (max(before, weight), patterns)
    if not entries:
        raise PairunError(
            Problem(
                "PR795",
                "no class of failure has an exit code, so there is nothing to export; "
                "define `exit_codes` in a file of a content root's folder diagnosis",
            )
        )
    ordered = sorted(entries.items(), key=lambda e: -e[1][0])
    return [_entry(klass, rules.exit_codes[klass], p) for klass, (_, p) in ordered]


def _entry(klass: str, code: int, patterns: list[dict[str, Any]]) -> dict[str, Any]:
    kind = CLASSES[klass]
    is_transient = kind.retry in ("retry", "retry_elsewhere")
    return {
        "containerExitCode": code,
        "issuer": "USER_CONTAINER" if kind.fault == "user" else "PLATFORM",
        "causer": kind.fault.upper(),
        "type": "TRANSIENT_FAILURE" if is_transient else "PERMANENT_FAILURE",
        "reason": kind.meaning,
        "solution": [kind.advice],
        "patterns": patterns,
    }


def _is_go_regex(regex: str) -> bool:
    try:
        from_go(regex)
    except ValueError:
        return False
    return not re.search(r"\(\?[!=<](?!P)", regex)


POLICY_NOTE = """\
# The exit codes of one container, from the table that `pairun manifest JOB` uses. For a job, that
# adds the codes of the init container. Where an instance cannot restart alone, it omits uncounted retries.
"""
"""What a policy says about its differences from a manifest's."""

WRITERS: Mapping[str, Callable[[Rules, str], Any]] = {
    "job": pod_failure_policy,
    "jobset": jobset_failure_policy,
    "framework": exit_spec,
}
"""What makes the rules of an engine, for the exit codes of a container."""

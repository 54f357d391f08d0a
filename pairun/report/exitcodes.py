"""The table of exit codes in the formats of platforms that retry a job."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pairun.diagnose.classes import CLASSES, EXIT_CODES
from pairun.diagnose.hits import CERTAIN
from pairun.diagnose.table import WEIGHTS
from pairun.diagnose.weighing import ADVISED
from pairun.errors import PairunError, Problem
from pairun.formats.goregex import from_go
from pairun.playbook.rules import Rules


def codes(rules: Rules) -> tuple[list[int], list[int]]:
    """Exit codes after which to give up, and those after which to run again at no cost.

    A code that says little is in neither list, so it counts as any failure does.
    """
    classes: dict[int, set[str]] = {}
    for code, (klass, weight) in EXIT_CODES.items():
        # A retry at no cost has no bound, so only a certain class may have one.
        if weight >= ADVISED:
            classes.setdefault(code, set()).add(klass)
    for klass, code in rules.exit_codes.items():
        classes.setdefault(code, set()).add(klass)
    fix, again = [], []
    for code, those in sorted(classes.items()):
        kinds = [CLASSES[k] for k in those]
        if all(k.retry in ("after_fix", "never") for k in kinds):
            fix.append(code)
        elif all(k.fault in ("platform", "hardware") for k in kinds):
            again.append(code)
    return fix, again


def pod_failure_policy(rules: Rules) -> dict[str, Any]:
    """A Job's policy (Kubernetes, "Handling retriable and non-retriable pod failures")."""
    fix, again = codes(rules)
    return {
        "podFailurePolicy": {
            "rules": [
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
                {"action": "FailJob", "onExitCodes": {"operator": "In", "values": fix}},
                {"action": "Ignore", "onExitCodes": {"operator": "In", "values": again}},
            ]
        }
    }


def jobset_failure_policy(rules: Rules) -> dict[str, Any]:
    """A JobSet's policy (JobSet, "Failure policy"); its Jobs have the policy of Pods beside it."""
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
        **pod_failure_policy(rules),
    }


def exit_spec(rules: Rules) -> list[dict[str, Any]]:
    """OpenPAI's exit spec of the classes that have an exit code.

    The first entry that matches wins, so the more certain classes come first. Patterns that Go
    does not have are left out, and so are rules about neighbouring lines.
    """
    entries: dict[str, tuple[int, list[dict[str, Any]]]] = {}
    for sample in rules.samples.values():
        klass = sample.data["class"]
        weight = sample.data.get("weight", WEIGHTS[sample.data["role"]])
        # An exit spec knows no neighbouring lines.
        if (
            klass not in rules.exit_codes
            or weight < CERTAIN
            or {"near", "unless"} & set(sample.data)
        ):
            continue
        regexes = [p["regex"] for p in sample.data["patterns"] if _go_knows(p["regex"])]
        before, patterns = entries.get(klass, (0, []))
        patterns += [{"userLogRegex": each} for each in regexes]
        entries[klass] = (max(before, weight), patterns)
    if not entries:
        raise PairunError(
            Problem("PR795", "no class of failure has an exit code, so there is nothing to export")
        )
    ordered = sorted(entries.items(), key=lambda e: -e[1][0])
    return [_entry(klass, rules.exit_codes[klass], p) for klass, (_, p) in ordered]


def _entry(klass: str, code: int, patterns: list[dict[str, Any]]) -> dict[str, Any]:
    kind = CLASSES[klass]
    again = kind.retry in ("retry", "retry_elsewhere")
    return {
        "containerExitCode": code,
        "issuer": "USER_CONTAINER" if kind.fault == "user" else "PLATFORM",
        "causer": kind.fault.upper(),
        "type": "TRANSIENT_FAILURE" if again else "PERMANENT_FAILURE",
        "reason": kind.meaning,
        "solution": [kind.advice],
        "patterns": patterns,
    }


def _go_knows(regex: str) -> bool:
    try:
        from_go(regex)
    except ValueError:
        return False
    return not re.search(r"\(\?[!=<](?!P)", regex)


WRITERS: Mapping[str, Callable[[Rules], Any]] = {
    "pod-failure-policy": pod_failure_policy,
    "jobset-failure-policy": jobset_failure_policy,
    "exit-spec": exit_spec,
}

"""``pairun export``: the table of exit codes in the forms of those who run a job again."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from pairun.diagnose.classes import CLASSES, EXIT_CODES
from pairun.diagnose.table import WEIGHTS
from pairun.diagnose.weighing import ADVISED, CERTAIN
from pairun.errors import PairunError, Problem, Problems
from pairun.formats.goregex import from_go
from pairun.playbook.content import open_content
from pairun.playbook.readyrules import made_rules
from pairun.playbook.rules import Rules, read_rules
from pairun.report.problems import print_problems

RULES = "rules"
"""What is no table of exit codes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("format", choices=(*WRITERS, RULES),
                        help=f"{RULES}: the rules as PID 1 reads them, for an image's build")  # fmt: skip
    parser.add_argument("--root", action="append", default=[], metavar="DIR",
                        help="a content root whose rules and exit codes count too")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Print the table as YAML, or the rules as JSON."""
    import yaml

    problems = Problems()
    content = open_content(args.root, os.environ)
    if args.format == RULES:
        made = made_rules(content, problems)
        print_problems(problems)
        print(made.decode())
        return 0
    rules = read_rules(content, problems)
    print_problems(problems)
    data = WRITERS[args.format](rules)
    print(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=1000), end="")
    return 0


def codes(rules: Rules) -> tuple[list[int], list[int]]:
    """Exit codes after which to give up, and those after which to run again at no cost.

    A code that says little by itself is in neither, so that it counts as any failure does.
    """
    classes: dict[int, set[str]] = {}
    for code, (klass, weight) in EXIT_CODES.items():
        # without a bound, as a retry at no cost is, only what is sure may be run again
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

    The first entry that matches wins there, so what is more certain stands above; patterns that
    Go cannot say are left out, and so are rules that look at the lines around.
    """
    entries: dict[str, tuple[int, list[dict[str, Any]]]] = {}
    for sample in rules.samples.values():
        klass = sample.data["class"]
        weight = sample.data.get("weight", WEIGHTS[sample.data["role"]])
        # an exit spec cannot ask what stands on the lines around
        if (
            klass not in rules.exit_codes
            or weight < CERTAIN
            or {"near", "unless"} & set(sample.data)
        ):
            continue
        said = [p["regex"] for p in sample.data["patterns"] if _go_knows(p["regex"])]
        before, patterns = entries.get(klass, (0, []))
        patterns += [{"userLogRegex": each} for each in said]
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

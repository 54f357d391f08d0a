"""Finds diagnosis rules whose own samples another rule decides."""

from __future__ import annotations

from pairun.diagnose.lines import Log
from pairun.diagnose.weighing import diagnose
from pairun.errors import Problems
from pairun.playbook.content import Content
from pairun.playbook.document.nodes import elements
from pairun.playbook.document.reading import Node
from pairun.playbook.rules import Rules, read_rules

MOST_RULES = 500
"""A file with more rules is not tried: a hostile one would cost seconds."""


def check_lost(document: Node, content: Content, problems: Problems) -> None:
    """Warn of each rule in a file if another rule decides one of its samples.

    Args:
        document: the file, already validated.
        content: the content roots, the file's own included.
        problems: collects the warnings.
    """
    nodes = {node.value["id"].value: node for node in elements(document, "rules")}
    if not 0 < len(nodes) <= MOST_RULES:
        return
    rules = read_rules(content, Problems())
    table = rules.table()
    for name, node in nodes.items():
        sample = rules.samples.get(name)
        if sample is None or sample.data["role"] == "noise":
            continue
        for text in sample.positive:
            verdict = diagnose([Log(text.encode())], table)
            if verdict.rule not in ("", name) and verdict.klass != sample.data["class"]:
                problems.warning(
                    "PR799",
                    f"the rule '{verdict.rule}' ({verdict.klass}) decides a sample of '{name}': "
                    f"{text}",
                    node.place,
                    f"give it `weight: {_winning(rules, verdict.rule)}`, or disable "
                    f"'{verdict.rule}'",
                )
                break


def _winning(rules: Rules, rule: str) -> int:
    """A weight that beats a rule."""
    return min(rules.table().rules[rule].weight + 1, 98)

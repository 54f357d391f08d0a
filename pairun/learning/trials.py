"""Tries learned rules on their samples, on all other rules' samples, and on explained logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.classes import UNKNOWN
from pairun.diagnose.lines import Log, parse
from pairun.diagnose.table import SCHEMA_VERSION, Table
from pairun.diagnose.weighing import diagnose
from pairun.errors import Place, Problems
from pairun.learning.endings import is_explained
from pairun.learning.survey import DEADLINE_S, judged_logs
from pairun.playbook.document.nodes import elements
from pairun.playbook.document.reading import Node
from pairun.playbook.rules import Rules, check_rules, sample_of

_MAX_CONFLICTS = 5


class Trial(NamedTuple):
    """The result of trying the rules that have a class.

    Attributes:
        rules: their names and classes.
        without_class: the names of rules without a class.
        samples: number of labelled lines tried.
        logs: number of logs tried.
        explained: number of logs that each rule explains and no other rule did.
    """

    rules: Mapping[str, str]
    without_class: tuple[str, ...]
    samples: int
    logs: int
    explained: Counter[str]


def try_rules(
    document: Node,
    known: Rules,
    folder: str,
    problems: Problems,
    unread: list[tuple[str, str]],
    facts: Circumstances | None = None,
) -> Trial:
    """Try the rules of a file.

    Args:
        document: the file.
        known: the rules in use.
        folder: the logs.
        problems: collects every mistake and every changed verdict, as errors.
        unread: collects unreadable files, each with the reason.
        facts: known of each log besides its lines.
    """
    check_rules(document, problems)
    nodes = {} if problems.errors else {n.value["id"].value: n for n in elements(document, "rules")}
    filled = {name: n for name, n in nodes.items() if n.value["class"].value != UNKNOWN}
    learned = _Learned(filled, known, problems)
    samples = learned.try_samples()
    logs = 0
    explained: Counter[str] = Counter()
    if filled and not problems.errors:
        for judged in judged_logs(folder, learned.known, unread, facts):
            logs += 1
            log = judged.log
            if not learned.matches(log):
                continue
            after = diagnose([log], learned.joined, facts, DEADLINE_S, guesses=False)
            if not is_explained(log, judged.diagnosis):
                explained[after.rule] += after.rule in filled
            elif after.klass != judged.diagnosis.klass:
                learned.refuse(
                    after.rule, judged.diagnosis.klass, after.klass, f"the log {log.name}"
                )
    classes = {name: node.value["class"].value for name, node in filled.items()}
    return Trial(classes, tuple(nodes.keys() - filled.keys()), samples, logs, explained)


class _Learned:
    """The rules of a file that have a class, together with the rules in use."""

    def __init__(self, nodes: Mapping[str, Node], known: Rules, problems: Problems) -> None:
        self._nodes, self._rules, self._problems = nodes, known, problems
        self._conflicts: Counter[str] = Counter()
        entries = [dict(sample_of(node.plain(), "").data) for node in nodes.values()]
        before = known.data()
        replaced = [each for each in before["rules"] if each["id"] not in nodes]
        self.known = known.table()
        self.joined = Table({**before, "rules": [*replaced, *entries]})
        self._alone = Table({"schema": SCHEMA_VERSION, "exit_codes": {}, "rules": entries})

    def matches(self, log: Log) -> bool:
        """Whether a learned rule matches a line of a log."""
        spans = self._alone.lines(log.data)
        return any(self._alone.matches(parse(at, log.data[at:end]).text) for at, end in spans)

    def try_samples(self) -> int:
        """Judge other rules' samples with and without the learned ones; returns their number."""
        count = 0
        for name, sample in self._rules.samples.items():
            if name in self._nodes:
                message = f"the rule '{name}' exists already, and this one would replace it"
                self._problems.error(
                    "PR797", message, self._nodes[name].place, "give it another id"
                )
                continue
            for text in (*sample.positive, *sample.negative):
                count += 1
                self._try(text, f"a sample of the rule '{name}': {text}")
        return count

    def _try(self, text: str, what: str) -> None:
        log = Log(text.encode())
        if not self.matches(log):
            return
        before = diagnose([log], self.known, guesses=False)
        after = diagnose([log], self.joined, guesses=False)
        if before.klass not in (UNKNOWN, after.klass):
            self.refuse(after.rule, before.klass, after.klass, what)

    def refuse(self, rule: str, before: str, after: str, what: str) -> None:
        """Report that a rule changes a verdict, at its pattern."""
        self._conflicts[rule] += 1
        if self._conflicts[rule] > _MAX_CONFLICTS:
            return
        name = rule if rule in self._nodes else next(iter(self._nodes))
        place = _pattern_place(self._nodes[name])
        message = f"the rule '{name}' turns {before} into {after} for {what}"
        self._problems.error("PR797", message, place, "make its pattern narrower, or add `unless`")


def _pattern_place(node: Node) -> Place:
    patterns = elements(node, "patterns")
    return patterns[0].place if patterns else node.place

"""The rules of the failure diagnosis: read from content roots, checked, compiled for PID 1.

Each root has a folder ``diagnosis`` with one file per family. A higher root can add rules, replace
rules by name, disable others, and set exit codes of classes. Reading checks each rule against its
samples, so a rule that misses a sample is never used.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from pairun.diagnose.classes import CLASSES, FAULTS, NONE, RETRIES
from pairun.diagnose.table import SCHEMA_VERSION, START, WEIGHTS, Table
from pairun.diagnose.words import words_needed
from pairun.errors import PairunError, Problems
from pairun.playbook.content import Content, Root
from pairun.playbook.document.checking import Format, violations
from pairun.playbook.document.reading import Node, elements, entries
from pairun.playbook.rootfiles import RULES_FOLDER
from pairun.playbook.ruletrial import RuleTrial, TrialOverError, letters, words_mistake

MIN_SAMPLES = 2
_MAX_WORDS = 400
_COMMON = """
acc actor agent batch checkpoint code config data device epoch error exit failed file found gpus grad
host info input iter job limit link load local loss lost master memory model nccl node nodes peer port
process rank ranks rate read shape size state step steps stop store time train training wait waiting
warn warning worker
"""
COMMON = frozenset(_COMMON.split())
"""Words that lines of healthy logs contain, too."""

_FEWER = "use several files, fewer patterns, or patterns that begin with a word"

_TEXTS = {"type": "array", "items": {"type": "string", "minLength": 1}}
_CLASSES = [k for k in CLASSES if k != NONE]

_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "rules of the failure diagnosis",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "family": {"type": "string"},
        "source": {"type": "string"},
        "rules": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["id", "class", "patterns", "positive", "negative"],
                "properties": {
                    "id": {"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"},
                    "class": {"enum": _CLASSES, "$comment": "`pairun doc failures` lists them"},
                    "role": {"enum": list(WEIGHTS)},
                    "weight": {"type": "integer", "minimum": 0, "maximum": 98},
                    "fault": {"enum": list(FAULTS)},
                    "retry": {"enum": list(RETRIES)},
                    "headline": {"type": "string"},
                    "tell": {"type": "string"},
                    "source": {"type": "string"},
                    "warning": {"type": "boolean"},
                    "near": {"type": "string"},
                    "unless": {"type": "string"},
                    "patterns": {**_TEXTS, "minItems": 1},
                    "positive": {**_TEXTS, "minItems": MIN_SAMPLES},
                    "negative": {**_TEXTS, "minItems": MIN_SAMPLES},
                },
            },
        },
        "disable": {"type": "array", "items": {"type": "string"}},
        "exit_codes": {
            "type": "object",
            "propertyNames": {"enum": _CLASSES},
            "additionalProperties": {"type": "integer", "minimum": 1, "maximum": 255},
        },
    },
}
_FORMAT = Format("PR790", "PR791", "PR792")


class Sample(NamedTuple):
    """A rule with the fields that only people and checks need.

    Attributes:
        data: the rule in the form that PID 1 reads.
        source: where the message is documented.
        positive: lines that it must match.
        negative: lines that it must not match.
    """

    data: Mapping[str, Any]
    source: str
    positive: tuple[str, ...]
    negative: tuple[str, ...]


class Rules(NamedTuple):
    """The rules of all roots.

    Attributes:
        exit_codes: class to the container's exit code.
        code_files: class to the file that sets this exit code.
    """

    samples: Mapping[str, Sample]
    exit_codes: Mapping[str, int]
    code_files: Mapping[str, str]

    def data(self) -> dict[str, Any]:
        """The table in the form that init writes for PID 1."""
        return {
            "schema": SCHEMA_VERSION,
            "exit_codes": dict(self.exit_codes),
            "code_files": dict(self.code_files),
            "rules": [dict(s.data) for s in self.samples.values()],
        }

    def table(self) -> Table:
        """The table, ready for use."""
        return Table(self.data())


def read_rules(content: Content, problems: Problems, *, trusted: bool = True) -> Rules:
    """The rules of every root.

    Args:
        problems: takes every error as a warning: an invalid rule is skipped, and must not keep a
            job from running.
        trusted: skip the samples of the built-in rules, which tests check.
    """
    samples: dict[str, Sample] = {}
    for root in content.roots:
        checked = not trusted or root.layer != "built-in"
        for path in root.files(RULES_FOLDER).values():
            document = _document(content, path, root, problems, checked=checked)
            if document is not None:
                _add(document, samples, problems, checked=checked)
    codes = own_exit_codes(content)
    return Rules(
        samples,
        {klass: node.value for klass, node in codes.items()},
        {klass: node.place.source.file for klass, node in codes.items()},
    )


def own_exit_codes(content: Content) -> dict[str, Node]:
    """The exit codes that the roots set for classes; files with errors are skipped."""
    codes: dict[str, Node] = {}
    for root in content.roots:
        if root.layer == "built-in":
            continue
        for path in root.files(RULES_FOLDER).values():
            document = _document(content, path, root, Problems(), checked=True)
            given = document.get("exit_codes") if document is not None else None
            codes.update(given.value if given is not None else {})
    return codes


def check_rules(document: Node, problems: Problems) -> None:
    """Report every error in a file of rules."""
    wrong = list(violations(document, _SCHEMA, _FORMAT))
    problems.extend(wrong)
    for klass, node in () if wrong else entries(document, "exit_codes"):
        if meaning := meaning_of(node.value):
            message = f"exit code {node.value} of {klass} has a meaning already: {meaning}"
            problems.warning("PR798", message, node.place, f"free codes: {FREE_CODES}")
    trial = RuleTrial()
    for node in () if wrong else elements(document, "rules"):
        try:
            mistake = _mistake(sample_of(node.plain(), ""), trial)
        except TrialOverError as e:
            problems.error("PR794", str(e), node.place, _FEWER)
            return
        if mistake:
            problems.error("PR794", f"the rule '{node.value['id'].value}': {mistake}", node.place)


def _document(
    content: Content, path: str, root: Root, problems: Problems, *, checked: bool
) -> Node | None:
    try:
        document = content.document(path, root)
    except PairunError as e:
        problems.extend(p._replace(severity="warning") for p in e.problems)
        return None
    wrong = (
        list(violations(document, _SCHEMA, _FORMAT, whole=os.path.basename(path)))
        if checked
        else []
    )
    problems.extend(p._replace(severity="warning") for p in wrong)
    return None if wrong else document


def _add(document: Node, samples: dict[str, Sample], problems: Problems, *, checked: bool) -> None:
    family = document.plain()
    for name in elements(document, "disable"):
        if samples.pop(name.value, None) is None:
            problems.warning("PR793", f"there is no rule '{name.value}' to disable", name.place)
    trial = RuleTrial() if checked else None
    for node in elements(document, "rules"):
        sample = sample_of(node.plain(), family.get("source", ""))
        try:
            wrong = _mistake(sample, trial)
        except TrialOverError as e:
            problems.warning("PR794", f"pairun ignores the rules: {e}", node.place, _FEWER)
            break
        if wrong:
            text = f"the rule '{sample.data['id']}' is ignored: {wrong}"
            problems.warning("PR794", text, node.place)
            continue
        samples[sample.data["id"]] = sample


def sample_of(rule: Mapping[str, Any], source: str) -> Sample:
    """A rule from a valid file."""
    patterns = []
    for regex in rule["patterns"]:
        try:
            words = words_needed(regex, _MAX_WORDS, _worth)
        except (re.error, OverflowError, RecursionError):
            words = None
        patterns.append({"regex": regex, "words": words or []})
    separate = ("patterns", "positive", "negative", "source", "role")
    data = {k: v for k, v in rule.items() if k not in separate}
    return Sample(
        {**data, "role": rule.get("role", "cause"), "patterns": patterns},
        rule.get("source", source),
        tuple(rule["positive"]),
        tuple(rule["negative"]),
    )


def _mistake(sample: Sample, trial: RuleTrial | None) -> str:
    """The error of a rule, or an empty text; without a trial only its words are checked."""
    if trial is not None:
        return trial.mistake(sample.data, sample.positive, sample.negative)
    for pattern in sample.data["patterns"]:
        if problem := words_mistake(pattern["words"]):
            return f"'{pattern['regex']}' {problem}"
    return ""


def _worth(word: str) -> int:
    """How specific a word is: a longer word more; words of healthy logs least."""
    count = letters(word)
    if count < START:
        return -1
    return 0 if word.lower().strip(" :=._") in COMMON else count


FREE_CODES = "3 to 123, 144 to 219, 236 to 248"
_MEANINGS = (
    (range(1, 2), "any error"),
    (range(2, 3), "wrong usage of a command"),
    (range(124, 126), "timeout and docker run use it"),
    (range(126, 128), "the shell cannot run a command"),
    (range(128, 144), "a signal ended the command"),
    (range(220, 236), "OpenPAI's exit spec uses it"),
    (range(249, 256), "pairun and OpenPAI use it"),
)


def meaning_of(code: int) -> str:
    """How a controller or a person understands an exit code; empty for an unused one."""
    return next((meaning for codes, meaning in _MEANINGS if code in codes), "")

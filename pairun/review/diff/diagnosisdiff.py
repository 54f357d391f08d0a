"""Compares the diagnosis of two stacks of roots: its rules, and its classes' exit codes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import attrs

from pairun.errors import PairunError, Place
from pairun.playbook.content import Content
from pairun.playbook.document.reading import load_bytes
from pairun.playbook.rootfiles import RULES_FOLDER
from pairun.playbook.rules import own_exit_codes


@attrs.frozen
class CodeChange:
    """A class whose exit code differs; None if a side has no exit code for it.

    Attributes:
        old: the old side's exit code.
        new: the new side's exit code.
        place: where the new one is set, else the old one.
    """

    old: int | None
    new: int | None
    place: Place


@attrs.frozen(kw_only=True)
class DiagnosisDiff:
    """The differences in the diagnosis.

    Attributes:
        exit_codes: the changes, by class.
        files: files with rules that the other side lacks.
    """

    exit_codes: Mapping[str, CodeChange]
    files: Sequence[str]

    @property
    def any(self) -> bool:
        """Whether anything differs."""
        return bool(self.exit_codes or self.files)


def diff_diagnosis(old: Content, new: Content) -> DiagnosisDiff:
    """Compare the diagnosis of two stacks of roots."""
    before, after = own_exit_codes(old), own_exit_codes(new)
    codes = {}
    for klass in sorted({*before, *after}):
        node = after.get(klass) or before[klass]
        was, now = (c[klass].value if klass in c else None for c in (before, after))
        if was != now:
            codes[klass] = CodeChange(was, now, node.place)
    files = [*_only_in(new, old), *_only_in(old, new)]
    return DiagnosisDiff(exit_codes=codes, files=list(dict.fromkeys(files)))


def _only_in(content: Content, other: Content) -> list[str]:
    """The files whose rules are in no file of the other side."""
    # Most files are identical, so they need not be parsed.
    alike = {load_bytes(path) for root in other.roots for path in root.files(RULES_FOLDER).values()}
    there = None
    files = []
    for root in content.roots:
        for path in root.files(RULES_FOLDER).values():
            if load_bytes(path) in alike:
                continue
            there = _all_rules(other) if there is None else there
            rules = _rules(content, path)
            if rules and rules not in there:
                files.append(path)
    return files


def _all_rules(content: Content) -> set[str]:
    return {
        _rules(content, path)
        for root in content.roots
        for path in root.files(RULES_FOLDER).values()
    }


def _rules(content: Content, path: str) -> str:
    """A file's rules in a normal form, without exit codes; empty if it has none."""
    own = content.own(path)
    try:
        data = content.document(path, own[1]).plain() if own else None
    except PairunError:
        return path
    if not isinstance(data, dict):
        return ""
    said = {key: value for key, value in data.items() if key != "exit_codes"}
    return json.dumps(said, sort_keys=True, default=str) if said else ""

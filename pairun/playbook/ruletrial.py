"""Tries a rule of the failure diagnosis on its samples, and on lines designed to be slow."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from pairun.base.cpulimit import CpuBudget, CpuLimitError
from pairun.diagnose.findings import is_near
from pairun.diagnose.lines import MAX_LINE, Log, parse
from pairun.diagnose.table import DIGITS, FLAGS, SCHEMA_VERSION, START, Table

SLOW_S = 0.05
"""The limit of one pattern on one slow line, in seconds: twice what the slowest built-in one takes on a busy machine."""

SAMPLES_S = 0.25
"""The limit of one rule's samples, in seconds."""

FILE_S = 1.0
"""The limit of one file's patterns, in seconds; the largest built-in file takes a fourth."""

_FAST_S = SLOW_S / 1000
_GROWTH = 1.15


class TrialOverError(Exception):
    """The patterns of one file exceed their time limit together."""


class RuleTrial:
    """Tries the rules of one file, within one limit of CPU time."""

    def __init__(self) -> None:
        self._until = time.process_time() + FILE_S

    def mistake(
        self, data: Mapping[str, Any], positive: Sequence[str], negative: Sequence[str]
    ) -> str:
        """The error of a rule, or an empty text.

        Raises:
            TrialOverError: the rules of the file exceed `FILE_S`.
        """
        if time.process_time() > self._until:
            raise TrialOverError(
                f"the patterns of this file take more than {FILE_S:g} s of CPU time to check"
            )
        for pattern in data["patterns"]:
            regex, words = pattern["regex"], pattern["words"]
            if problem := _form_mistake(regex):
                return f"'{regex}' is not a valid regular expression: {problem}"
            if problem := words_mistake(words):
                return f"'{regex}' {problem}"
            taken = self._cost_s(re.compile(regex, FLAGS), words, positive)
            if taken > SLOW_S:
                return f"'{regex}' takes {taken * 1000:.0f} ms for one line"
        try:
            return CpuBudget(SAMPLES_S).spend(lambda: _sample_mistake(data, positive, negative))
        except CpuLimitError:
            return f"it takes more than {SAMPLES_S * 1000:.0f} ms for its own samples"

    def _cost_s(
        self, regex: re.Pattern[str], words: Sequence[str], positive: Sequence[str]
    ) -> float:
        """The longest time that a pattern takes for a line of repeated near matches, in seconds.

        The line grows in small steps once it takes measurable time, to detect a slow pattern
        before it blocks.
        """
        worst = 0.0
        for part in {*words[:8], *positive[:2], "a", " ", "0 ", "a.a", "'"}:
            if time.process_time() > self._until:
                break
            line = part * (MAX_LINE // len(part) + 1)
            size = 8.0
            while size <= MAX_LINE:
                taken = _once_s(regex, line[: int(size)] + "\x01")
                if taken > SLOW_S:
                    # Other programs may have evicted the caches, so measure again.
                    again = (_once_s(regex, line[: int(size)] + "\x01") for _ in range(3))
                    taken = min(taken, *again)
                worst = max(worst, taken)
                if worst > SLOW_S:
                    return worst
                size *= 2 if taken < _FAST_S else _GROWTH
        return worst


def words_mistake(words: Sequence[str]) -> str:
    """The error of the words that a pattern needs, or an empty text."""
    if not words or min(map(letters, words)) < START:
        return f"needs a word of {START} letters in each of its alternatives"
    return ""


def letters(word: str) -> int:
    """How many letters a word has; digits do not count."""
    return len(word.encode().translate(None, DIGITS))


def _form_mistake(regex: str) -> str:
    try:
        CpuBudget(SAMPLES_S).spend(lambda: re.compile(regex, FLAGS))
    except (re.error, OverflowError, CpuLimitError) as e:
        return str(e)
    except RecursionError:
        return "it is nested too deep"
    return ""


def _sample_mistake(
    data: Mapping[str, Any], positive: Sequence[str], negative: Sequence[str]
) -> str:
    table = Table({"schema": SCHEMA_VERSION, "exit_codes": {}, "rules": [data]})
    for text in positive:
        if not _matches(table, text):
            return f"it does not match its own sample: {text}"
    for text in negative:
        if _matches(table, text):
            return f"it matches a sample that it must not match: {text}"
    return ""


def _matches(table: Table, text: str) -> bool:
    log = Log(text.encode())
    for start, end in table.lines(log.data):
        line = parse(start, log.data[start:end])
        if any(is_near(match.rule, line, log) for match in table.matches(line.text)):
            return True
    return False


def _once_s(regex: re.Pattern[str], line: str) -> float:
    start = time.process_time()
    try:
        CpuBudget(10 * SLOW_S).spend(lambda: regex.search(line))
    except CpuLimitError:
        return 10 * SLOW_S
    return time.process_time() - start

"""Fuzzes the formats that pairun reads: random cases of a seed, each in a process of its own."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

from tests.attack.fuzz.box import Verdict, judge
from tests.attack.fuzz.targets import TARGETS


class Finding(NamedTuple):
    """A case that broke a promise.

    Attributes:
        target: the name of the format.
        number: of the case; the seed and the number make the input again.
        data: the input.
        verdict: what went wrong.
    """

    target: str
    number: int
    data: bytes
    verdict: Verdict


def input_of(target: str, seed: int, number: int) -> bytes:
    """The input of a case; the same for the same arguments."""
    rng = random.Random(f"{target} {seed} {number}")
    seeds = TARGETS[target].seeds
    return rng.choice(TARGETS[target].mutations)(rng.choice(seeds), seeds, rng)


def verdict_of(target: str, data: bytes) -> Verdict:
    """Give an input to pairun, in a process of its own."""
    run = TARGETS[target].run
    return judge(lambda folder: run(data, folder), TARGETS[target].codes)


def findings(target: str, seed: int, numbers: range) -> Iterator[Finding]:
    """The cases that break a promise."""
    for number in numbers:
        data = input_of(target, seed, number)
        verdict = verdict_of(target, data)
        if verdict.broken:
            yield Finding(target, number, data, verdict)

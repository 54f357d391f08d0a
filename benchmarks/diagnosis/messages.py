"""The messages that train the classifier: those that the project's authors wrote, and the rules' own."""

from __future__ import annotations

import json
import lzma
import pathlib
from collections.abc import Iterable
from typing import NamedTuple

from benchmarks.diagnosis.expansions import expansions
from pairun.diagnose.classes import NONE
from pairun.playbook.rules import Rules

WRITTEN = pathlib.Path(__file__).parent / "data" / "messages.xz"
"""JSON lines; each message has a class, other acceptable ones, its writer, and the text."""


class Message(NamedTuple):
    """A message with its class.

    Attributes:
        text: one to eight lines.
        klass: the class.
        also: other classes that are acceptable.
        writer: who wrote it; empty for a rule's.
    """

    text: str
    klass: str
    also: tuple[str, ...] = ()
    writer: str = ""


def written_messages(file: pathlib.Path = WRITTEN) -> list[Message]:
    """The messages that the project's authors wrote, most of them before they read the rules."""
    lines = lzma.decompress(file.read_bytes()).decode().splitlines()
    records = [json.loads(line) for line in lines]
    return [Message(r["text"], r["class"], tuple(r["also"]), r["writer"]) for r in records]


def write_messages(messages: Iterable[Message], file: pathlib.Path = WRITTEN) -> None:
    """Write messages for `written_messages`."""
    lines = [
        json.dumps({"class": m.klass, "also": m.also, "writer": m.writer, "text": m.text})
        for m in messages
    ]
    text = "".join(f"{line}\n" for line in lines)
    file.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def messages_of_rules(rules: Rules) -> list[Message]:
    """What the rules' samples and expressions say."""
    messages = []
    for sample in rules.samples.values():
        klass = NONE if sample.data["role"] == "noise" else sample.data["class"]
        messages += [Message(text, klass) for text in sample.positive]
        messages += [Message(text, NONE) for text in sample.negative]
        for pattern in sample.data["patterns"]:
            messages += [Message(text, klass) for text in expansions(pattern["regex"])]
    return messages

"""The user's command of a role as the shell reads it, with the place of each of its characters."""

from __future__ import annotations

import attrs

from pairun.errors import Place
from pairun.formats import mustache
from pairun.job.model import Job, Role
from pairun.job.templates import TAG, command_nodes, user_command
from pairun.playbook.document.reading import Node
from pairun.playbook.document.textplaces import place_in


@attrs.frozen(kw_only=True)
class Script:
    """A text that a shell reads.

    Attributes:
        text: the text; a tag that only the run replaces is a word of the same length.
        lines: for each line the node that holds it, and its position in the node's value.
    """

    text: str
    lines: tuple[tuple[Node, int], ...]

    def place(self, offset: int) -> Place:
        """The place of a character of the text."""
        line = self.text.count("\n", 0, offset)
        column = offset - (self.text.rfind("\n", 0, offset) + 1)
        node, start = self.lines[min(line, len(self.lines) - 1)]
        end = str(node.value).find("\n", start)
        length = (len(str(node.value)) if end < 0 else end) - start
        return place_in(node, start + min(column, length))

    def place_of_line(self, number: int) -> Place:
        """The place where a line begins, counted from 1; of the last line where there are fewer."""
        lines = self.text.split("\n")
        number = min(max(number, 1), len(lines))
        before = sum(len(line) + 1 for line in lines[: number - 1])
        indent = len(lines[number - 1]) - len(lines[number - 1].lstrip())
        return self.place(before + indent)


def command_script(job: Job, role: Role) -> Script:
    """The commands of a role, joined and rendered as OpenPAI's REST server does."""
    nodes = command_nodes(job, role)
    lines = [line for node in nodes for line in _lines(node)]
    text = TAG.sub(lambda tag: "x" * len(tag[0]), user_command(job, role))
    if text.count("\n") + 1 != len(lines):  # a parameter has several lines
        lines = [(nodes[0], 0)]
    return Script(text=text, lines=tuple(lines))


def _lines(node: Node) -> list[tuple[Node, int]]:
    """Where each line of a command begins in its node, without the spaces that rendering removes."""
    value = str(node.value)
    trimmed = mustache.trim(value)
    at = value.find(trimmed)
    starts = []
    for line in trimmed.split("\n"):
        starts.append((node, at))
        at += len(line) + 1
    return starts

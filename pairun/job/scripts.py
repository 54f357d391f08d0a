"""A role's command as the shell reads it, with the place of each of its characters."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property

import attrs

from pairun.errors import Place
from pairun.job import mustache
from pairun.job.model import Job, Role
from pairun.job.templates import TAG, command_nodes, user_command
from pairun.playbook.document.reading import Node
from pairun.playbook.document.textplaces import place_in


@attrs.frozen
class ShellText:
    """A text that a shell reads.

    Attributes:
        text: the text; a word of the same length replaces each tag that is resolved at run time.
        lines: for each line the node that contains it, and its position in the node's value.
        secret: it contains a secret, so no message may quote it.
    """

    name: str
    text: str
    lines: tuple[tuple[Node, int], ...]
    secret: bool = False

    @cached_property
    def _starts(self) -> list[int]:
        return _starts(self.text)

    def place(self, offset: int) -> Place:
        """The place of a character of the text."""
        line = bisect_right(self._starts, offset) - 1
        column = offset - self._starts[line]
        node, start = self.lines[min(line, len(self.lines) - 1)]
        end = str(node.value).find("\n", start)
        length = (len(str(node.value)) if end < 0 else end) - start
        return place_in(node.place, node.value, start + min(column, length))

    def offset(self, line: int, column: int) -> int:
        """The offset of a line and a column, both counted from 1."""
        return self._starts[line - 1] + column - 1

    def place_of_line(self, number: int) -> Place:
        """The place where a line starts, counted from 1; of the last non-empty line up to it."""
        lines = self.text.split("\n")[: max(number, 1)]
        while len(lines) > 1 and not lines[-1].strip():
            lines.pop()
        before = sum(len(line) + 1 for line in lines[:-1])
        return self.place(before + len(lines[-1]) - len(lines[-1].lstrip()))


def command_script(job: Job, role: Role) -> ShellText:
    """The commands of a role, joined and rendered as OpenPAI's REST server does."""
    nodes = command_nodes(job, role)
    lines = [line for node in nodes for line in _trimmed_lines(node)]
    text = TAG.sub(lambda tag: "x" * len(tag[0]), user_command(job, role))
    if text.count("\n") + 1 != len(lines):  # a parameter has several lines
        lines = [(nodes[0], 0)]
    name = f"the command of role '{role.name}'"
    return ShellText(name=name, text=text, lines=tuple(lines))


def _trimmed_lines(node: Node) -> list[tuple[Node, int]]:
    """Where each line of a command starts in its node; rendering removes the spaces before it."""
    value = str(node.value)
    trimmed = mustache.trim(value)
    begin = value.find(trimmed)
    return [(node, begin + at) for at in _starts(trimmed)]


def node_lines(node: Node) -> list[tuple[Node, int]]:
    """Where each line of a text starts in its node."""
    return [(node, at) for at in _starts(str(node.value))]


def _starts(text: str) -> list[int]:
    return [0, *(end.end() for end in re.finditer("\n", text))]

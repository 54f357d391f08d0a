"""The uses and assignments of variables in a script, as data."""

from __future__ import annotations

from typing import Literal, NamedTuple

MentionKind = Literal["use", "set", "guard"]


class Mention(NamedTuple):
    """A variable at one place of a script.

    Attributes:
        name: the variable's name.
        offset: its position in the text.
        kind: ``use`` fails under ``nounset`` if the variable is unset; ``guard`` is a use that does
            not (``${X:-}``, ``[ -v X ]``); ``set`` assigns a value.
        in_order: whether it runs in the order of the text, outside of functions and loops.
    """

    name: str
    offset: int
    kind: MentionKind
    in_order: bool


class ShellText(NamedTuple):
    """The result of reading a script.

    Attributes:
        mentions: of variables, in the order in which the shell evaluates them.
        unknown_from: the position from which other variables may be set, because the script reads
            another file, runs text, or disables ``nounset``; None if there is none.
        bare: position and character of all non-ASCII text outside of quotes, comments and here
            documents.
    """

    mentions: tuple[Mention, ...]
    unknown_from: int | None
    bare: tuple[tuple[int, str], ...]

    def unset(self) -> list[Mention]:
        """The first use of each variable that the script does not set before it."""
        set_anywhere = {m.name for m in self.mentions if m.kind != "use"}
        seen: set[str] = set()
        unset = []
        for m in self.mentions:
            if m.kind == "use" and m.name not in seen and not self._may_be_set(m, set_anywhere):
                unset.append(m)
            if m.kind != "use" or m.in_order:
                seen.add(m.name)
        return unset

    def _may_be_set(self, use: Mention, set_anywhere: set[str]) -> bool:
        if self.unknown_from is not None and (not use.in_order or use.offset > self.unknown_from):
            return True
        return not use.in_order and use.name in set_anywhere

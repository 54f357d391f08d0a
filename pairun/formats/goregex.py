"""Regular expressions in Go's syntax become Python's.

The exit spec of a cluster is written for Go's ``regexp`` package (RE2; its syntax is documented in
the package ``regexp/syntax``). Most of it reads the same in Python; what differs is rewritten here,
and what Go refuses is refused.
"""

from __future__ import annotations

import itertools
import re

FLAGS = re.ASCII
"""What the result is compiled with: Go's classes and word boundaries are of ASCII."""

_POSIX = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7f", "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f", "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~",
    "punct": r"!-/:-@\[-`{-~", "space": r"\t\n\v\f\r ", "upper": "A-Z", "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_NO_TAB = r"\t\n\f\r "  # Go's \s: without the vertical tab that Python's has
_SAME = "dDwWbB"
_CONTROL = {"a": r"\x07", "f": r"\x0c", "t": r"\t", "n": r"\n", "r": r"\r", "v": r"\x0b"}

_FLAG_GROUP = re.compile(r"\(\?(?=[^)])([imsU]*)(?:-([imsU]+))?([:)])")
_NAMED_GROUP = re.compile(r"\(\?P?<([A-Za-z_][A-Za-z0-9_]*)>")
_REPEAT = re.compile(r"[*+?]|\{(\d+)(?:,(\d*))?\}")
_HEX = re.compile(r"\\x(?:\{([0-9A-Fa-f]{1,8})\}|([0-9A-Fa-f]{2}))")
_OCTAL = re.compile(r"\\(0[0-7]{0,2}|[1-7][0-7]{1,2})")
_NAMED_CLASS = re.compile(r"\[:(\^?)([a-z]+):\]")
_MAX_REPEAT = 1000
_MAX_DEPTH = 200


def from_go(pattern: str) -> str:
    """The Python pattern, for text and `FLAGS`, of a Go pattern.

    Args:
        pattern: as Go's ``regexp.Compile`` takes it.

    Raises:
        ValueError: Go refuses it, or it uses what Python cannot say.
    """
    reader = _Reader(pattern)
    out = reader.alternatives("")
    if reader.at < len(pattern):
        raise ValueError("an unexpected )")
    try:
        re.compile(out, FLAGS)
    except (re.error, OverflowError, RecursionError) as e:
        raise ValueError(str(e)) from e
    return out


class _Reader:
    """Reads a pattern from left to right, and writes it as Python has it.

    Args:
        text: the pattern.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._depth = 0

    def alternatives(self, flags: str) -> str:
        """What stands up to the end of the group; flags are written where they count."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ValueError("it is nested too deeply")
        branches: list[list[tuple[str, str]]] = [[]]
        while self.at < len(self.text) and self.text[self.at] != ")":
            if self.text[self.at] == "|":
                self.at += 1
                branches.append([])
            elif found := _FLAG_GROUP.match(self.text, self.at):
                self.at = found.end()
                inner = _changed(flags, found)
                if found[3] == ":":
                    branches[-1].append(("", self._repeated(f"(?:{self._body(inner)})")))
                else:
                    flags = inner  # in Go it holds up to the end of the group, over every |
            elif self.text[self.at] == "(":
                branches[-1].append(("", self._repeated(self._group(flags))))
            else:
                branches[-1].append((flags, self._repeated(self._atom(flags))))
        self._depth -= 1
        return "|".join(map(_joined, branches))

    def _body(self, flags: str) -> str:
        body = self.alternatives(flags)
        if self.at >= len(self.text):
            raise ValueError("a ) is missing")
        self.at += 1
        return body

    def _group(self, flags: str) -> str:
        head = "("
        if found := _NAMED_GROUP.match(self.text, self.at):
            self.at = found.end()
            head = f"(?P<{found[1]}>"
        elif self.text.startswith("(?", self.at):
            raise ValueError(f"Go does not know {self.text[self.at : self.at + 3]}")
        else:
            self.at += 1
        return f"{head}{self._body(flags)})"

    def _atom(self, flags: str) -> str:
        char = self.text[self.at]
        if char == "\\":
            return self._escape()
        if char == "[":
            return self._class()
        if char in "*+?":
            raise ValueError(f"nothing to repeat before {char}")
        self.at += 1
        if char == "$":
            # without the flag m the end of the text, which Python's $ is not quite
            return "$" if "m" in flags else r"\Z"
        return char if char in ".^" else re.escape(char)

    def _repeated(self, atom: str) -> str:
        """The atom with what repeats it; in Go nothing is repeated twice, nor possessively."""
        start = self.at
        found = _REPEAT.match(self.text, start)
        if not found:
            return atom
        if found[1]:
            low = int(found[1])
            high = int(found[2]) if found[2] else low
            if not low <= high <= _MAX_REPEAT:
                raise ValueError(f"{found[0]}: at most {_MAX_REPEAT}, the smaller number first")
        self.at = found.end()
        if self.text.startswith("?", self.at):
            self.at += 1
        if _REPEAT.match(self.text, self.at):
            raise ValueError(f"{self.text[start : self.at + 1]} repeats what is repeated")
        return atom + self.text[start : self.at]

    def _escape(self) -> str:
        kind = self.text[self.at + 1 : self.at + 2]
        if kind == "Q":
            end = self.text.find(r"\E", self.at)
            end = len(self.text) if end < 0 else end
            literal = self.text[self.at + 2 : end]
            self.at = end + 2
            return f"(?:{re.escape(literal)})"
        if kind and kind in "Az" + _SAME + "sS":
            self.at += 2
            others = {"A": r"\A", "z": r"\Z", "s": f"[{_NO_TAB}]", "S": f"[^{_NO_TAB}]"}
            return others.get(kind, f"\\{kind}")
        return self._character()

    def _character(self) -> str:
        """One escaped character."""
        text, at = self.text, self.at
        found = _HEX.match(text, at) or _OCTAL.match(text, at)
        if found:
            self.at = found.end()
            digits = next(g for g in found.groups() if g)
            code = int(digits, 16 if found.re is _HEX else 8)
            if code > 0x10FFFF:
                raise ValueError(f"{found[0]} is no character")
            return f"\\U{code:08x}"
        char = text[at + 1 : at + 2]
        self.at += 2
        if char in _CONTROL:
            return _CONTROL[char]
        if not char or char.isalnum() or not char.isascii():
            raise ValueError(f"\\{char} is not supported")
        return re.escape(char)

    def _class(self) -> str:
        """A class in brackets; a ] that stands first is one of its characters."""
        self.at += 1
        out = "["
        if self.text.startswith("^", self.at):
            self.at += 1
            out += "^"
        first = self.at
        while self.at == first or not self.text.startswith("]", self.at):
            if self.at >= len(self.text):
                raise ValueError("a ] is missing")
            out += self._member()
        self.at += 1
        return out + "]"

    def _member(self) -> str:
        if found := _NAMED_CLASS.match(self.text, self.at):
            if found[1] or found[2] not in _POSIX:
                raise ValueError(f"{found[0]} is not supported")
            self.at = found.end()
            return _POSIX[found[2]]
        char = self.text[self.at]
        if char != "\\":
            self.at += 1
            return char if char == "-" else re.escape(char)
        kind = self.text[self.at + 1 : self.at + 2]
        if kind and kind in "dDwWsS":
            self.at += 2
            return _NO_TAB if kind == "s" else f"\\{kind}"
        return self._character()


def _changed(flags: str, found: re.Match[str]) -> str:
    on, off = set(found[1]), set(found[2] or "")
    if "U" in on | off:
        raise ValueError("the flag U is not supported; write *? and +? instead")
    return "".join(sorted((set(flags) | on) - off))


def _joined(pieces: list[tuple[str, str]]) -> str:
    """Pieces of a branch; the flags of each stand around it, as no group has any itself."""
    out = ""
    for flags, run in itertools.groupby(pieces, key=lambda piece: piece[0]):
        text = "".join(piece for _, piece in run)
        out += f"(?{flags}:{text})" if flags else text
    return out

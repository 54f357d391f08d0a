"""Regular expressions in Go's syntax, translated to Python's.

A cluster's exit spec uses Go's ``regexp`` package (RE2, documented in the package
``regexp/syntax``). Most of its syntax is the same in Python. This module translates the rest, and
rejects patterns that Go rejects.
"""

from __future__ import annotations

import itertools
import re

GO_FLAGS = re.ASCII
"""The flags to compile the result with: Go's classes and word boundaries are ASCII."""

_POSIX = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7f", "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f", "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~",
    "punct": r"!-/:-@\[-`{-~", "space": r"\t\n\v\f\r ", "upper": "A-Z", "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_NO_TAB = r"\t\n\f\r "  # Go's \s does not match the vertical tab, Python's does
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
    """Translate a Go pattern to a Python pattern for text and `GO_FLAGS`.

    Raises:
        ValueError: Go rejects it, or Python has no equivalent.
    """
    reader = _Reader(pattern)
    out = reader.alternatives("")
    if reader.at < len(pattern):
        raise ValueError("an unexpected )")
    try:
        re.compile(out, GO_FLAGS)
    except (re.error, OverflowError, RecursionError) as e:
        raise ValueError(str(e)) from e
    return out


class _Reader:
    """Reads a pattern from left to right, and writes it in Python's syntax."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._depth = 0

    def alternatives(self, flags: str) -> str:
        """Translate the rest of the group; flags are written where they apply."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ValueError("it is nested too deeply")
        branches: list[list[tuple[str, str]]] = [[]]
        while self.at < len(self.text) and self.text[self.at] != ")":
            if self.text[self.at] == "|":
                self.at += 1
                branches.append([])
            elif match := _FLAG_GROUP.match(self.text, self.at):
                self.at = match.end()
                inner = _changed(flags, match)
                if match[3] == ":":
                    branches[-1].append(("", self._repeated(f"(?:{self._body(inner)})")))
                else:
                    flags = inner  # in Go it applies up to the end of the group, across every |
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
        if match := _NAMED_GROUP.match(self.text, self.at):
            self.at = match.end()
            head = f"(?P<{match[1]}>"
        elif self.text.startswith("(?", self.at):
            raise ValueError(f"Go does not support {self.text[self.at : self.at + 3]}")
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
            # without the flag m only the end of the text; Python's $ also matches before a newline
            return "$" if "m" in flags else r"\Z"
        return char if char in ".^" else re.escape(char)

    def _repeated(self, atom: str) -> str:
        """The atom with its repetition; Go has no double or possessive repetition."""
        start = self.at
        match = _REPEAT.match(self.text, start)
        if not match:
            return atom
        if match[1]:
            low = int(match[1])
            high = int(match[2]) if match[2] else low
            if not low <= high <= _MAX_REPEAT:
                raise ValueError(f"{match[0]}: at most {_MAX_REPEAT}, the smaller number first")
        self.at = match.end()
        if self.text.startswith("?", self.at):
            self.at += 1
        if _REPEAT.match(self.text, self.at):
            raise ValueError(f"{self.text[start : self.at + 1]} repeats a repetition")
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
        """Translate one escaped character."""
        text, at = self.text, self.at
        match = _HEX.match(text, at) or _OCTAL.match(text, at)
        if match:
            self.at = match.end()
            digits = next(g for g in match.groups() if g)
            code = int(digits, 16 if match.re is _HEX else 8)
            if code > 0x10FFFF:
                raise ValueError(f"{match[0]} is not a character")
            return f"\\U{code:08x}"
        char = text[at + 1 : at + 2]
        self.at += 2
        if char in _CONTROL:
            return _CONTROL[char]
        if not char or char.isalnum() or not char.isascii():
            raise ValueError(f"\\{char} is not supported")
        return re.escape(char)

    def _class(self) -> str:
        """Translate a class in brackets; a ] in first position is a member of it."""
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
        if match := _NAMED_CLASS.match(self.text, self.at):
            if match[1] or match[2] not in _POSIX:
                raise ValueError(f"{match[0]} is not supported")
            self.at = match.end()
            return _POSIX[match[2]]
        char = self.text[self.at]
        if char != "\\":
            self.at += 1
            return char if char == "-" else re.escape(char)
        kind = self.text[self.at + 1 : self.at + 2]
        if kind and kind in "dDwWsS":
            self.at += 2
            return _NO_TAB if kind == "s" else f"\\{kind}"
        return self._character()


def _changed(flags: str, match: re.Match[str]) -> str:
    on, off = set(match[1]), set(match[2] or "")
    if "U" in on | off:
        raise ValueError("the flag U is not supported; write *? and +? instead")
    return "".join(sorted((set(flags) | on) - off))


def _joined(pieces: list[tuple[str, str]]) -> str:
    """Join the pieces of a branch, with the flags of each around it."""
    out = ""
    for flags, run in itertools.groupby(pieces, key=lambda piece: piece[0]):
        text = "".join(piece for _, piece in run)
        out += f"(?{flags}:{text})" if flags else text
    return out

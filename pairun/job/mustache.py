"""The template language of OpenPAI's REST server: mustache.js 2.3 with ``<%`` and ``%>``.

The server renders plain text and plain names, and drops every other tag: sections with their
content, comments, partials, unescaped names. A change of delimiters applies to the rest of the text.
The parser follows the behaviour of mustache.js's ``parseTemplate``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from pairun.playbook.document.scalars import js_text

SPACES = (
    "\t\n\v\f\r \u00a0\u1680"
    + "".join(map(chr, range(0x2000, 0x200B)))
    + "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""The characters that ECMAScript's ``\\s`` matches and its ``trim`` removes."""

_BLANK = re.compile(f"[{SPACES}]*")
_LINE = r"[^\n]*\n|[^\n]+"
_INDEX = r"\[(\d+)\]"


class TagError(Exception):
    """A template that mustache.js rejects.

    Attributes:
        position: offset of the tag in the text.
    """

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


class Token(NamedTuple):
    """A piece of a template: ``text``, ``name``, or the character that starts a tag."""

    kind: str
    text: str
    position: int


def trim(text: str) -> str:
    """Remove the spaces around a text, as ECMAScript's ``trim`` does."""
    return text.strip(SPACES)


def render(template: str, view: Mapping[str, Any]) -> str:
    """Render a template as OpenPAI's REST server does.

    Raises:
        TagError: mustache.js rejects the template.
    """
    out, depth = [], 0
    for kind, text, _ in parse(template):
        if kind in "#^":
            depth += 1
        elif kind == "/":
            depth -= 1
        elif depth:
            continue
        elif kind == "text":
            out.append(text)
        elif kind == "name":
            name = re.sub(_INDEX, r".\1", text)
            value = look_up(view, name)
            out.append(f"<% {name} %>" if value is None else _js_string(value))
    return trim("".join(out))


def parse(template: str) -> list[Token]:
    """Split a template into tokens.

    Raises:
        TagError: a tag is not closed, or sections do not match.
    """
    return _Parser(template).tokens() if "<%" in template else [Token("text", template, 0)]


class _Parser:
    def __init__(self, template: str) -> None:
        self._template = template
        self._position = 0
        self._tokens: list[Token] = []
        self._spaces: list[int] = []
        self._has_tag = False
        self._non_space = False
        self._sections: list[Token] = []
        self._opening, self._closing = "<%", "%>"

    def tokens(self) -> list[Token]:
        while self._position < len(self._template):
            start = self._position
            text, is_closed = self._until(self._opening)
            self._text(text, start)
            if is_closed:
                start = self._position
                self._position += len(self._opening)
                self._tag(start)
        if self._sections:
            section = self._sections[-1]
            raise TagError(f"the section '{section.text}' does not end", section.position)
        return [t for t in self._tokens if t.text or t.kind != "text"]

    def _until(self, literal: str) -> tuple[str, bool]:
        """The text up to a literal, or to the end if there is none."""
        start = self._position
        position = self._template.find(literal, start)
        self._position = position if position >= 0 else len(self._template)
        return self._template[start : self._position], position >= 0

    def _skip_spaces(self) -> None:
        if blank := _BLANK.match(self._template, self._position):
            self._position = blank.end()

    def _text(self, text: str, start: int) -> None:
        for line in re.findall(_LINE, text):
            if _BLANK.fullmatch(line):
                self._spaces.append(len(self._tokens))
            else:
                self._non_space = True
            self._tokens.append(Token("text", line, start))
            start += len(line)
            if line.endswith("\n"):
                self._end_line()

    def _end_line(self) -> None:
        # A line with only a tag and spaces is removed, unless the tag is a name.
        if self._has_tag and not self._non_space:
            for index in self._spaces:
                self._tokens[index] = Token("text", "", 0)
        self._spaces = []
        self._has_tag = self._non_space = False

    def _tag(self, start: int) -> None:
        self._has_tag = True
        self._skip_spaces()
        sign = self._template[self._position : self._position + 1]
        kind = sign if sign and sign in "#^/>{&=!" else "name"
        self._position += kind != "name"
        self._skip_spaces()
        if kind == "=":
            value, is_closed = self._until("=")
            self._position += is_closed
            is_closed = self._until(self._closing)[1]
        elif kind == "{":
            value, is_closed = self._until("}" + self._closing)
            self._position += is_closed
            kind = "&"
        else:
            value, is_closed = self._until(self._closing)
        if not is_closed:
            raise TagError("a tag does not end", start)
        self._position += len(self._closing)
        self._take(Token(kind, value.rstrip(SPACES), start))

    def _take(self, token: Token) -> None:
        self._tokens.append(token)
        if token.kind in "#^":
            self._sections.append(token)
        elif token.kind == "/":
            opened = self._sections.pop() if self._sections else None
            if opened is None or opened.text != token.text:
                raise TagError(f"'{token.text}' ends a section that is not open", token.position)
        elif token.kind in {"name", "&"}:
            self._non_space = True
        elif token.kind == "=":
            delimiters = re.split(f"[{SPACES}]+", token.text)[:2]
            if len(delimiters) != 2:
                raise TagError("not a pair of delimiters", token.position)
            self._opening, self._closing = delimiters


def look_up(view: Any, name: str) -> Any:
    """The value of a dotted name, or None."""
    if name == ".":
        return view
    value = view
    for step in name.split(".") if name.find(".") > 0 else [name]:
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list | str) and step == "length":
            value = len(value)
        elif isinstance(value, list | str) and re.fullmatch("0|[1-9][0-9]{0,8}", step):
            value = value[int(step)] if int(step) < len(value) else None
        else:
            return None
    return value


def _js_string(value: Any) -> str:
    if isinstance(value, Mapping):
        return "[object Object]"
    if isinstance(value, list):
        return ",".join("" if v is None else _js_string(v) for v in value)
    return js_text(value)

"""Reads a script in one pass: words, quotes, expansions, here documents; bash(1), SHELL GRAMMAR."""

from __future__ import annotations

import re
from itertools import dropwhile
from typing import NamedTuple

from pairun.formats.shell.commands import ASSIGNMENT, NAME, Word, effect
from pairun.formats.shell.mentions import Mention, MentionKind, ShellText

_BEFORE_COMMANDS = frozenset(
    {
        "if",
        "then",
        "else",
        "elif",
        "do",
        "done",
        "while",
        "until",
        "!",
        "{",
        "}",
        "time",
        "fi",
        "esac",
    }
)
"""Words that a command can follow."""

_METACHARACTERS = frozenset(" \t\n;&|()<>")
_SPECIAL = frozenset("0123456789*@#?-$!")
_FUNCTION_END = re.compile(r"[ \t]*\)")
_MAX_CHARACTERS = 200_000
_MAX_DEPTH = 50
_MAX_ENCLOSING = 1000


def read_shell(text: str) -> ShellText:
    """Read a script, whatever it contains.

    Args:
        text: for bash or a POSIX shell; in a very long one, all variables are unknown.
    """
    if len(text) > _MAX_CHARACTERS:
        return ShellText((), -1, ())
    return _Reader(text).read()


class _HereDocument(NamedTuple):
    delimiter: str
    strips_tabs: bool
    expands: bool


class _TooDeep(Exception):
    """The script nests deeper than any real one."""


class _Reader:
    """Reads one script; ``_at`` is the position of the next character."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._mentions: list[Mention] = []
        self._unknown_from: int | None = None
        self._bare: list[tuple[int, str]] = []
        self._here: list[_HereDocument] = []
        # What surrounds the position: "loop", "function" or "group".
        self._enclosing: list[str] = []
        self._function_next = False

    def read(self) -> ShellText:
        try:
            while self._at < len(self._text):
                self._code("")
                self._at += 1  # a stray closing parenthesis or back quote
        except _TooDeep:
            self._unknown_from = -1
        return ShellText(tuple(self._mentions), self._unknown_from, tuple(self._bare))

    def _peek(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._text[at] if at < len(self._text) else ""

    def _mention(self, name: str, offset: int, kind: MentionKind) -> None:
        in_order = not {"loop", "function"} & set(self._enclosing)
        self._mentions.append(Mention(name, offset, kind, in_order))

    # Commands

    def _code(self, end: str) -> None:
        """Read commands up to a closing ``)`` or back quote, which is not consumed."""
        if self._depth >= _MAX_DEPTH:
            raise _TooDeep
        self._depth += 1
        command: list[Word] = []
        starting, cases = True, 0
        while char := self._peek():
            if char == end and (char != ")" or not cases):
                break
            starting = starting or not command
            if char in " \t\r" or (char == "\\" and self._peek(1) == "\n"):
                self._at += 2 if char == "\\" else 1
            elif char == "\n":
                self._finish(command)
                self._at += 1
                self._here_documents()
            elif char == "#":
                self._comment()
            elif char in ";&|":
                self._finish(command)
                self._at += 1
            elif char == "(":
                self._parenthesis(command)
            elif char == ")":  # the end of a pattern of `case`
                command.clear()
                self._at += 1
            elif char in "<>":
                self._redirection()
            else:
                word = self._word(end)
                command.append(word)
                if starting and not word.quoted:
                    cases = max(0, cases + (word.text == "case") - (word.text == "esac"))
                    self._structure(word.text)
                elif word.text == "{" and len(command) == 3 and command[0].text == "function":
                    self._structure("{")
                    command.clear()
                starting = starting and not word.quoted and word.text in _BEFORE_COMMANDS
        self._finish(command)
        self._depth -= 1

    def _structure(self, keyword: str) -> None:
        """Track loops, groups and functions."""
        if len(self._enclosing) >= _MAX_ENCLOSING:
            raise _TooDeep
        if keyword in ("for", "while", "until", "select"):
            self._enclosing.append("loop")
        elif keyword == "{":
            self._enclosing.append("function" if self._function_next else "group")
            self._function_next = False
        elif keyword == "function":
            self._function_next = True
        elif keyword in ("done", "}"):
            closes = ("loop",) if keyword == "done" else ("group", "function")
            if self._enclosing and self._enclosing[-1] in closes:
                self._enclosing.pop()

    def _finish(self, command: list[Word]) -> None:
        """Record the effect of a complete command."""
        words = list(dropwhile(lambda w: w.text in _BEFORE_COMMANDS and not w.quoted, command))
        command.clear()
        if not words:
            return
        if words[0].text in ("for", "select"):
            if len(words) > 1 and (name := NAME.match(words[1].text)):
                self._mention(name[0], words[1].end, "set")
            return
        if words[0].text == "function":
            return
        done = effect(words)
        for each, offset in done.sets:
            self._mention(each, offset, "set")
        for each, offset in done.guards:
            self._mention(each, offset, "guard")
        if done.unknown and self._unknown_from is None:
            self._unknown_from = self._at

    def _parenthesis(self, command: list[Word]) -> None:
        """Read a function's parentheses, an arithmetic command, or a subshell."""
        if self._text.startswith("((", self._at):
            self._at += 2
            self._arithmetic("))")
            return
        self._at += 1
        if command and (end := _FUNCTION_END.match(self._text, self._at)):
            self._at = end.end()
            command.clear()
            self._function_next = True
            return
        is_function, self._function_next = self._function_next, False
        self._enclosing.append("function" if is_function else "group")
        outer = self._enclosing
        self._enclosing = outer.copy()
        self._code(")")
        self._enclosing = outer[:-1]
        self._at += 1

    def _comment(self) -> None:
        newline = self._text.find("\n", self._at)
        self._at = len(self._text) if newline < 0 else newline

    def _redirection(self) -> None:
        """Read the operator; the following word is read like any other."""
        if self._text.startswith("<<<", self._at):
            self._at += 3
        elif self._text.startswith("<<", self._at):
            self._here_operator()
        elif self._peek(1) == "(":
            self._at += 2
            self._code(")")
            self._at += 1
        else:
            self._at += 1
            while self._peek() and self._peek() in ">&|":
                self._at += 1

    # Here documents

    def _here_operator(self) -> None:
        self._at += 2
        strips = self._peek() == "-"
        self._at += strips
        while self._peek() and self._peek() in " \t":
            self._at += 1
        start = self._at
        self._raw_word()
        written = self._text[start : self._at]
        plain = written.replace("\\", "").replace("'", "").replace('"', "")
        self._here.append(_HereDocument(plain, strips, expands=plain == written))

    def _raw_word(self) -> None:
        """Skip a word without expansions."""
        while (char := self._peek()) and char not in _METACHARACTERS:
            if char in "'\"":
                closing = self._text.find(char, self._at + 1)
                self._at = len(self._text) if closing < 0 else closing
            self._at += 2 if char == "\\" else 1
        self._at = min(self._at, len(self._text))

    def _here_documents(self) -> None:
        """Read the texts of the here documents that the previous line opened."""
        pending, self._here = self._here, []
        for each in pending:
            start = self._at
            while True:
                newline = self._text.find("\n", self._at)
                line_end = len(self._text) if newline < 0 else newline
                line = self._text[self._at : line_end]
                last = (line.lstrip("\t") if each.strips_tabs else line) == each.delimiter
                body_end, self._at = self._at, min(line_end + 1, len(self._text))
                if last or newline < 0:
                    break
            after = self._at
            if each.expands:
                self._here_body(start, body_end if last else after)
            self._at = after

    def _here_body(self, start: int, end: int) -> None:
        self._at = start
        while self._at < end and self._peek():
            if self._peek() == "\\":
                self._at += 2
            elif not self._expansion():
                self._at += 1

    # Words

    def _word(self, end: str) -> Word:
        """Read a word: up to an unquoted metacharacter."""
        start, parts, quoted = self._at, list[str](), False
        while char := self._peek():
            if char == "(" and self._in_array(start, parts):
                self._array()
            elif char == "(" and parts and parts[-1][-1:] in "?*+@!":  # an extended pattern
                self._at += 1
                self._code(")")
                self._at += 1
            elif char in _METACHARACTERS or char == end:
                break
            elif char == "\\":
                parts.append(self._peek(1))
                self._at += 2
            elif char == "'" or self._text.startswith("$'", self._at):
                parts.append(self._single_quotes())
                quoted = True
            elif char == '"' or self._text.startswith('$"', self._at):
                self._at += char == "$"
                parts.append(self._double_quotes())
                quoted = True
            else:
                before = self._at
                if not self._expansion():
                    if not char.isascii():
                        self._bare.append((self._at, char))
                    self._at += 1
                parts.append(self._text[before : self._at])
        self._at = min(self._at, len(self._text))
        return Word("".join(parts), start, self._at, quoted)

    def _in_array(self, start: int, parts: list[str]) -> bool:
        written = self._text[start : self._at]
        return bool(parts) and written.endswith("=") and bool(ASSIGNMENT.match(written))

    def _array(self) -> None:
        """Read the elements of ``NAME=( … )``."""
        self._at += 1
        while (char := self._peek()) and char != ")":
            if char == "#":
                self._comment()
            elif char in _METACHARACTERS:
                self._at += 1
            else:
                self._word(")")
        self._at += 1

    def _single_quotes(self) -> str:
        escapes = self._peek() == "$"
        self._at += 2 if escapes else 1
        start = self._at
        while (char := self._peek()) and char != "'":
            self._at += 2 if escapes and char == "\\" else 1
        text = self._text[start : self._at]
        self._at += 1
        return text

    def _double_quotes(self) -> str:
        self._at += 1
        start = self._at
        while (char := self._peek()) and char != '"':
            if char == "\\":
                self._at += 2
            elif not self._expansion():
                self._at += 1
        text = self._text[start : self._at]
        self._at += 1
        return text

    # Expansions

    def _expansion(self) -> bool:
        """Read an expansion that starts with ``$`` or a back quote; False if there is none."""
        char, following = self._peek(), self._peek(1)
        if char == "`":
            self._at += 1
            self._code("`")
            self._at += 1
        elif char != "$":
            return False
        elif following == "{":
            self._braces()
        elif self._text.startswith("$((", self._at):
            self._at += 3
            self._arithmetic("))")
        elif following == "(":
            self._at += 2
            enclosing = self._enclosing.copy()
            self._code(")")
            self._enclosing = enclosing
            self._at += 1
        elif name := NAME.match(self._text, self._at + 1):
            self._mention(name[0], self._at, "use")
            self._at = name.end()
        elif following and following in _SPECIAL:
            self._at += 2
        else:
            return False
        return True

    def _braces(self) -> None:
        """Read ``${…}``; bash(1), Parameter Expansion."""
        start = self._at
        self._at += 2
        indirect = self._peek() == "!"
        if indirect or (self._peek() == "#" and self._peek(1) != "}"):
            self._at += 1
        if name := NAME.match(self._text, self._at):
            self._at = name.end()
            lists_all = False
            if self._peek() == "[":
                lists_all = self._peek(1) in ("@", "*")
                self._rest("]")
            operator = self._peek()
            if operator == ":" and self._peek(1) and self._peek(1) in "-=+?":
                operator = self._peek(1)
            # ${!PREFIX*} and ${!PREFIX@} list names; ${X[@]} of an unset array is empty.
            if not lists_all and not (indirect and operator and operator in "*@"):
                if operator and operator in "-=+?":
                    self._mention(name[0], start, "guard")
                else:
                    self._mention(name[0], start, "use")
        self._rest("}")

    def _rest(self, closing: str) -> None:
        """Read to the closing bracket of an expansion, including nested expansions and quotes."""
        if self._depth >= _MAX_DEPTH:
            raise _TooDeep
        self._depth += 1
        while (char := self._peek()) and char != closing:
            if char == "\\":
                self._at += 2
            elif char == '"':
                self._double_quotes()
            elif not self._expansion():
                self._at += 1
        self._at += 1
        self._depth -= 1

    def _arithmetic(self, closing: str) -> None:
        """Read an arithmetic expression, in which assignments set variables."""
        if self._depth >= _MAX_DEPTH:
            raise _TooDeep
        self._depth += 1
        open_ = 0
        while (char := self._peek()) and (open_ or not self._text.startswith(closing, self._at)):
            open_ += (char == "(") - (char == ")" and open_ > 0)
            if name := NAME.match(self._text, self._at):
                # Do not report variables that only arithmetic uses: treat them as set.
                self._mention(name[0], name.end(), "set")
                self._at = name.end()
            elif not self._expansion():
                self._at += 1
        self._at += len(closing)
        self._depth -= 1

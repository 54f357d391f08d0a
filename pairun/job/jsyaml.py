"""The default schemas of js-yaml 3 and 4, with which OpenPAI's REST servers read job files."""

from __future__ import annotations

import datetime
import re

from pairun.playbook.document.scalars import PLAIN_WORDS, Dialect, Scalar, Timestamp

_JS_DECIMAL = r"[-+]?[1-9][0-9_]*|[-+]?0"
_JS_SEXAGESIMAL = r"[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+"
_JS_FLOAT = (
    r"[-+]?(?:0|[1-9][0-9_]*)(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.[0-9_]+(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*"
)
_JS_DATE = r"(\d{4})-(\d\d)-(\d\d)"
_JS_TIME = (
    r"(\d{4})-(\d\d?)-(\d\d?)(?:[Tt]|[ \t]+)(\d\d?):(\d\d):(\d\d)(?:\.(\d*))?"
    r"(?:[ \t]*(?:Z|([-+])(\d\d?)(?::(\d\d))?))?"
)


_JS4_INT = (
    (r"[-+]?0b[01_]*[01]", 2),
    (r"[-+]?0x[0-9a-fA-F_]*[0-9a-fA-F]", 16),
    (r"[-+]?0o[0-7_]*[0-7]", 8),
    (r"[-+]?[0-9](?:[0-9_]*[0-9])?", 10),
)
_JS4_FLOAT = r"[-+]?[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?|\.[0-9_]+(?:[eE][-+]?[0-9]+)?"


def resolve_js(text: str) -> Scalar:
    """Read a plain scalar as js-yaml 3's default schema does (its ``lib/js-yaml/type``).

    This is neither YAML 1.1 nor 1.2: ``yes`` and ``on`` are text, but ``012`` is ten, ``1:30``
    ninety, ``1_000`` a number and ``2020-01-02`` a date.
    """
    if text in PLAIN_WORDS:
        return PLAIN_WORDS[text]
    if text[0] not in "0123456789+-.":
        return text
    if (number := _js_integer(text)) is not None:
        return number
    if not text.endswith("_") and re.fullmatch(_JS_FLOAT, text):
        return _js_float(text.replace("_", ""))
    return _js_timestamp(text)


def _js_integer(text: str) -> int | None:
    digits = text.lstrip("+-") if text[0] in "+-" else text
    sign = -1 if text[0] == "-" else 1
    if len(text) - len(digits) > 1 or text.endswith("_") or len(text) > 400:
        return None
    for prefix, pattern, base in (
        ("0b", "[01_]+", 2),
        ("0x", "[0-9a-fA-F_]+", 16),
        ("0", "[0-7_]+", 8),
    ):
        rest = digits[len(prefix) :]
        if digits.startswith(prefix) and re.fullmatch(pattern, rest) and rest.strip("_"):
            return sign * int(rest.replace("_", ""), base)
    if re.fullmatch(_JS_DECIMAL, text):
        return int(text.replace("_", ""))
    if re.fullmatch(_JS_SEXAGESIMAL, text):
        value = 0
        for part in digits.replace("_", "").split(":"):
            value = value * 60 + int(part)
        return sign * value
    return None


def _js_float(text: str) -> Scalar:
    if ":" in text:
        value = 0.0
        for part in text.lstrip("+-").split(":"):
            value = value * 60 + float(part)
        return -value if text[0] == "-" else value
    return float(text) if text.strip("+-.") else text


def _js_timestamp(text: str) -> Scalar:
    try:
        if m := re.fullmatch(_JS_DATE, text):
            when = datetime.datetime(*map(int, m.groups()), tzinfo=datetime.UTC)  # type: ignore[arg-type,misc]
        elif m := re.fullmatch(_JS_TIME, text):
            year, month, day, hour, minute, second = (int(m[i]) for i in range(1, 7))
            when = datetime.datetime(year, month, day, hour, minute, second, tzinfo=datetime.UTC)
            if m[8]:
                offset = datetime.timedelta(hours=int(m[9]), minutes=int(m[10] or 0))
                when += offset if m[8] == "-" else -offset
        else:
            return text
    except ValueError:  # the 32nd of a month, which js-yaml reads as a day of the next month
        return text
    return Timestamp(when.strftime("%a %b %d %Y %H:%M:%S GMT+0000 (Coordinated Universal Time)"))


def resolve_js4(text: str) -> Scalar:
    """Read a plain scalar as js-yaml 4.1's default schema does (its ``lib/type``).

    This is YAML 1.2's core schema plus digits grouped by ``_``, binary numbers and dates: ``012``
    and ``0o14`` are twelve, and ``1:30`` is text.
    """
    if text in PLAIN_WORDS:
        return PLAIN_WORDS[text]
    if text[0] not in "0123456789+-.":
        return text
    for pattern, base in _JS4_INT:
        if len(text) <= 400 and re.fullmatch(pattern, text):
            return int(re.sub("_|0[box]" if base != 10 else "_", "", text), base)
    if not text.endswith("_") and re.fullmatch(_JS4_FLOAT, text):
        return _js_float(text.replace("_", ""))
    return _js_timestamp(text)


JS = Dialect(name="js-yaml 3", resolve=resolve_js)
"""The dialect of OpenPAI's REST server."""

JS4 = Dialect(name="js-yaml 4", resolve=resolve_js4)
"""The dialect of the REST server of OpenPAI's maintained fork."""


def dialect_named(name: str) -> Dialect:
    """The dialect that a cluster's policy names."""
    return JS4 if name == JS4.name else JS

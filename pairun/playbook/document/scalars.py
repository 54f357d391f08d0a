"""Plain scalars in two dialects: YAML 1.2's core schema, and js-yaml 3's default schema."""

from __future__ import annotations

import datetime
import re
from typing import Literal

Dialect = Literal["core", "js"]
Scalar = str | int | float | bool | None


class Timestamp(str):
    """A date in a job file: text that prints as JavaScript prints a Date (in UTC)."""

    __slots__ = ()


_CORE_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_CORE_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **{s + w: float(s + "inf") for s in ("", "+", "-") for w in (".inf", ".Inf", ".INF")},
}


def resolve_core(text: str) -> Scalar:
    """A plain scalar by YAML 1.2's core schema (YAML 1.2.2, section 10.3.2)."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "0123456789+-.":
        return text
    if _CORE_INT.fullmatch(text):
        base = {"0o": 8, "0x": 16}.get(text[:2], 10)
        return int(text, base) if len(text) < 400 else text
    return float(text) if _CORE_FLOAT.fullmatch(text) else text


_JS_DECIMAL = re.compile(r"[-+]?[1-9][0-9_]*|[-+]?0")
_JS_SEXAGESIMAL = re.compile(r"[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+")
_JS_FLOAT = re.compile(
    r"[-+]?(?:0|[1-9][0-9_]*)(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.[0-9_]+(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*"
)
_JS_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_JS_TIME = re.compile(
    r"(\d{4})-(\d\d?)-(\d\d?)(?:[Tt]|[ \t]+)(\d\d?):(\d\d):(\d\d)(?:\.(\d*))?"
    r"(?:[ \t]*(?:Z|([-+])(\d\d?)(?::(\d\d))?))?"
)


def resolve_js(text: str) -> Scalar:
    """A plain scalar as js-yaml 3's default schema reads it (its ``lib/js-yaml/type``).

    That is neither YAML 1.1 nor 1.2: ``yes`` and ``on`` are text, but ``012`` is ten, ``1:30``
    ninety, ``1_000`` a number and ``2020-01-02`` a date.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "0123456789+-.":
        return text
    if (number := _js_integer(text)) is not None:
        return number
    if not text.endswith("_") and _JS_FLOAT.fullmatch(text):
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
    if _JS_DECIMAL.fullmatch(text):
        return int(text.replace("_", ""))
    if _JS_SEXAGESIMAL.fullmatch(text):
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
        if m := _JS_DATE.fullmatch(text):
            when = datetime.datetime(*map(int, m.groups()), tzinfo=datetime.UTC)  # type: ignore[arg-type,misc]
        elif m := _JS_TIME.fullmatch(text):
            year, month, day, hour, minute, second = (int(m[i]) for i in range(1, 7))
            when = datetime.datetime(year, month, day, hour, minute, second, tzinfo=datetime.UTC)
            if m[8]:
                offset = datetime.timedelta(hours=int(m[9]), minutes=int(m[10] or 0))
                when += offset if m[8] == "-" else -offset
        else:
            return text
    except ValueError:  # the 32nd of a month: js-yaml counts on, nobody means it
        return text
    return Timestamp(when.strftime("%a %b %d %Y %H:%M:%S GMT+0000 (Coordinated Universal Time)"))


RESOLVE = {"core": resolve_core, "js": resolve_js}


def js_text(value: Scalar) -> str:
    """A scalar as JavaScript's ``String()`` prints it (ECMA-262, Number::toString)."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        if abs(value) <= 2**53:
            return str(value)
        value = float(value) if abs(value) < 10**308 else float("inf") * (1 if value > 0 else -1)
    if value != value:  # noqa: PLR0124 - NaN is the only such value
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    shortest = repr(abs(value))
    mantissa, _, power = shortest.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0") or "0"
    point = (
        len(whole.lstrip("0")) if whole.strip("0") else -len(fraction) + len(fraction.lstrip("0"))
    )
    point += int(power or 0)
    digits = digits.rstrip("0") or "0"
    sign = "-" if value < 0 else ""
    if digits == "0":
        return "0"
    if len(digits) <= point <= 21:
        return sign + digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return sign + digits[:point] + "." + digits[point:]
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{sign}{mantissa}e{'+' if point > 0 else '-'}{abs(point - 1)}"

"""Plain scalars: a dialect defines their values; playbooks use YAML 1.2's core schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

Scalar = str | int | float | bool | None


class Dialect(NamedTuple):
    """Defines the values of plain scalars."""

    name: str
    resolve: Callable[[str], Scalar]


class Timestamp(str):
    """A date in a job file: text in the form in which JavaScript prints a Date (in UTC)."""

    __slots__ = ()


_CORE_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_CORE_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
PLAIN_WORDS: Mapping[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **{s + w: float(s + "inf") for s in ("", "+", "-") for w in (".inf", ".Inf", ".INF")},
}
"""Words with a special value in every dialect."""


def resolve_core(text: str) -> Scalar:
    """Resolve a plain scalar by YAML 1.2's core schema (YAML 1.2.2, section 10.3.2)."""
    if text in PLAIN_WORDS:
        return PLAIN_WORDS[text]
    if text[0] not in "0123456789+-.":
        return text
    if _CORE_INT.fullmatch(text):
        base = {"0o": 8, "0x": 16}.get(text[:2], 10)
        return int(text, base) if len(text) < 400 else text
    return float(text) if _CORE_FLOAT.fullmatch(text) else text


CORE = Dialect(name="core", resolve=resolve_core)


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

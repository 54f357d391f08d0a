"""Job files are read as js-yaml 3 reads them, and printed as JavaScript prints them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairun.errors import PairunError, Source
from pairun.job.jsyaml import JS, JS4, resolve_js
from pairun.playbook.document.reading import read_text
from pairun.playbook.document.scalars import Scalar, Timestamp, js_text

# What js-yaml 3.15 makes of `k: TEXT` on Node.js, in the time zone UTC: text, type, String(value).
JS_YAML = [
    ("yes", "string", "yes"),
    ("on", "string", "on"),
    ("no", "string", "no"),
    ("off", "string", "off"),
    ("y", "string", "y"),
    ("Y", "string", "Y"),
    ("true", "boolean", "true"),
    ("True", "boolean", "true"),
    ("TRUE", "boolean", "true"),
    ("tRUE", "string", "tRUE"),
    ("false", "boolean", "false"),
    ("null", "object", "null"),
    ("Null", "object", "null"),
    ("NULL", "object", "null"),
    ("~", "object", "null"),
    ("", "object", "null"),
    ("012", "number", "10"),
    ("0o12", "string", "0o12"),
    ("09", "string", "09"),
    ("0x1F", "number", "31"),
    ("0b11", "number", "3"),
    ("1:30", "number", "90"),
    ("1:30:05", "number", "5405"),
    ("190:20:30.15", "number", "685230.15"),
    ("1_000", "number", "1000"),
    ("0.1", "number", "0.1"),
    (".5", "number", "0.5"),
    ("5.", "number", "5"),
    ("1e3", "number", "1000"),
    ("1e-7", "number", "1e-7"),
    ("1E+3", "number", "1000"),
    ("+12", "number", "12"),
    ("-0", "number", "0"),
    ("+.inf", "number", "Infinity"),
    ("-.INF", "number", "-Infinity"),
    (".nan", "number", "NaN"),
    (".NaN", "number", "NaN"),
    ("2020-01-02", "date", "Thu Jan 02 2020 00:00:00 GMT+0000 (Coordinated Universal Time)"),
    (
        "2020-01-02T03:04:05Z",
        "date",
        "Thu Jan 02 2020 03:04:05 GMT+0000 (Coordinated Universal Time)",
    ),
    (
        "2001-12-14 21:59:43.10 -5",
        "date",
        "Sat Dec 15 2001 02:59:43 GMT+0000 (Coordinated Universal Time)",
    ),
    ("=", "string", "="),
    ("<<", "string", "<<"),
    ("0", "number", "0"),
    ("00", "number", "0"),
    ("1.0", "number", "1"),
    ("1.0.0", "string", "1.0.0"),
    ("123456789012345678901", "number", "123456789012345680000"),
    ("0.1e1", "number", "1"),
    ("1__0", "number", "10"),
    ("1_", "string", "1_"),
    ("_1", "string", "_1"),
    ("685.230_15e+03", "number", "685230.15"),
    ("0o7", "string", "0o7"),
    ("0x", "string", "0x"),
    ("1e", "string", "1e"),
    ("+", "string", "+"),
    (".", "string", "."),
    ("12e03", "number", "12000"),
    ("1:60", "string", "1:60"),
    ("0:30", "string", "0:30"),
    ("08:30", "string", "08:30"),
    ("!!str 1", "string", "1"),
    ('!!int "3"', "number", "3"),
    ('"1"', "string", "1"),
    ("'true'", "string", "true"),
    ("2020-1-2", "string", "2020-1-2"),
    ("0x_1F", "number", "31"),
    ("0b1_1", "number", "3"),
    ("017_7", "number", "127"),
    ("1,000", "string", "1,000"),
    (".1_0", "number", "0.1"),
    ('!!bool "true"', "boolean", "true"),
    ("!!float 1", "number", "1"),
    ("Infinity", "string", "Infinity"),
]

# What js-yaml 4.1 makes of the texts that it reads differently.
JS_YAML_4 = [
    ("012", "number", "12"), ("-012", "number", "-12"), ("+012", "number", "12"),
    ("0o12", "number", "10"), ("-0o7", "number", "-7"), ("0o8", "string", "0o8"),
    ("09", "number", "9"), ("08.5", "number", "8.5"), ("012.5", "number", "12.5"),
    ("1:30", "string", "1:30"), ("1:30:05", "string", "1:30:05"), ("-1:30", "string", "-1:30"),
    ("190:20:30.15", "string", "190:20:30.15"), ("017_7", "number", "177"),
    ("01e3", "number", "1000"), ('!!int "012"', "number", "12"), ("+.5", "string", "+.5"),
    ("0_1", "number", "1"), ("0_", "string", "0_"), ("0x", "string", "0x"), ("0o", "string", "0o"),
    ("0b", "string", "0b"),
]  # fmt: skip


def kind(value: Scalar) -> str:
    """JavaScript's ``typeof``, with dates set apart."""
    if isinstance(value, Timestamp):
        return "date"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    return "object" if value is None else "number"


@pytest.mark.parametrize(("text", "type_", "printed"), JS_YAML)
def test_a_scalar_is_what_js_yaml_makes_of_it(text: str, type_: str, printed: str) -> None:
    """Each form of scalar has js-yaml's type, and prints as JavaScript prints it."""
    node = read_text(Source("job.yaml", "job", f"k: {text}"), JS).get("k")
    assert node is not None
    assert (kind(node.value), js_text(node.value)) == (type_, printed)


_OF_4 = {text for text, _, _ in JS_YAML_4}


@pytest.mark.parametrize(
    ("text", "type_", "printed"), [*JS_YAML_4, *(s for s in JS_YAML if s[0] not in _OF_4 | {"0o7"})]
)
def test_a_scalar_is_what_js_yaml_4_makes_of_it(text: str, type_: str, printed: str) -> None:
    """The other dialect has the types of js-yaml 4.1."""
    node = read_text(Source("job.yaml", "job", f"k: {text}"), JS4).get("k")
    assert node is not None
    assert (kind(node.value), js_text(node.value)) == (type_, printed)


@pytest.mark.parametrize("text", ["!foo x", "!!python/object:os.system x", "-"])
def test_what_js_yaml_refuses_is_refused(text: str) -> None:
    """Unknown tags and a bare dash are errors, as in js-yaml."""
    with pytest.raises(PairunError):
        read_text(Source("job.yaml", "job", f"k: {text}"), JS)


# ECMA-262, Number::toString.
NUMBERS = [
    (0.0, "0"),
    (-0.0, "0"),
    (1e21, "1e+21"),
    (1e20, "100000000000000000000"),
    (123456789.125, "123456789.125"),
    (1e-6, "0.000001"),
    (1e-7, "1e-7"),
    (1.5e-9, "1.5e-9"),
    (-2.5e30, "-2.5e+30"),
    (5e-324, "5e-324"),
    (2**53 + 1, "9007199254740992"),
    (10**400, "Infinity"),
    (-(10**400), "-Infinity"),
]


@pytest.mark.parametrize(("number", "printed"), NUMBERS)
def test_a_number_prints_as_in_javascript(number: float, printed: str) -> None:
    """Numbers keep the shortest text that JavaScript gives them."""
    assert js_text(number) == printed


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_printed_number_is_the_same_number(number: float) -> None:
    """Printing loses nothing."""
    assert float(js_text(number)) == number


@given(st.text(st.sampled_from("0123456789+-.:_eExXobTZ n"), max_size=24))
def test_no_plain_scalar_breaks_the_resolver(text: str) -> None:
    """Whatever resembles a number or a date resolves to a scalar."""
    resolve_js(text)

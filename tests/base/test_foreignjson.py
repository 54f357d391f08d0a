"""The one reader of JSON from outside the process: its bounds, its errors, and that there is no other."""

from __future__ import annotations

import ast
import json
import math
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairun.base import foreignjson
from pairun.base.foreignjson import MAX_JSON_DEPTH, parse_json, parse_json_at, parse_record

ROOT = pathlib.Path(foreignjson.__file__).parents[2]
OWN = {
    "pairun/base/foreignjson.py": "the reader",
    "pairun/cli/summary.py": "PID 1 wrote it to an inherited descriptor",
    "pairun/cli/tasks.py": "PID 1 wrote it to an inherited descriptor",
    "pairun/playbook/podkeys.py": "a value of this process",
    "pairun/playbook/podschema.py": "a file of the package",
    "pairun/report/page/runpage.py": "a value of this process",
    "modules/openpai_plugin/library/plugins/plugin_utils.py": "a plugin's Python, without pairun; the module wrote it",
}  # fmt: skip
"""What else calls a parser of JSON, and why it may."""

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda each: st.lists(each) | st.dictionaries(st.text(), each),
)
SCRAPS = st.lists(
    st.sampled_from(["[", "]", "{", "}", '"', "\\", ":", ",", '"a":', "[" * 60, "]" * 60, " ", "1"])
    | st.text(max_size=3)
).map("".join)


def depth_of(value: Any) -> int:
    """How many arrays and objects contain each other."""
    parts = value.values() if isinstance(value, dict) else value
    return 1 + max(map(depth_of, parts), default=0) if isinstance(value, dict | list) else 0


@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_what_python_writes_is_read_as_it_was(value: Any, ascii_only: bool, indent: Any) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert parse_json(text) == parse_json(text, strict=True) == value
    assert parse_json_at("x" + text, 1)[0] == value
    assert parse_record(text.encode("utf-8", "replace")) is None or isinstance(value, dict)


@given(SCRAPS, st.booleans())
def test_any_text_gives_what_python_gives_or_one_error(text: str, strict: bool) -> None:
    """A text that `json.loads` accepts is refused for its depth or a repeated key only."""
    try:
        value = parse_json(text, strict=strict)
    except json.JSONDecodeError as e:
        if e.msg.startswith("More than 100 levels") or e.msg.endswith("given twice"):
            return
        with pytest.raises(ValueError):
            json.loads(text)
    else:
        assert value == json.loads(text)
        assert depth_of(value) <= MAX_JSON_DEPTH


@given(st.binary() | SCRAPS.map(str.encode))
def test_any_bytes_give_a_value_or_one_error(data: bytes) -> None:
    record = parse_record(data)
    try:
        value = parse_json(data)
    except json.JSONDecodeError:
        value = None
    assert record == (value if isinstance(value, dict) else None)


@pytest.mark.parametrize(
    ("opening", "closing", "most"),
    [
        ("[", "]", MAX_JSON_DEPTH),
        ('{"a":', "}", MAX_JSON_DEPTH),
        ('["]]", {"\\"]": ', "}]", MAX_JSON_DEPTH // 2),
        ('[[], "\\\\", ', "]", MAX_JSON_DEPTH - 1),
    ],
)
def test_the_depth_is_bounded_on_every_python(opening: str, closing: str, most: int) -> None:
    """Brackets in strings do not count; one level more than allowed is refused at its place."""
    text = opening * most + "1" + closing * most
    assert parse_json(text) == json.loads(text)
    for levels in (most + 1, 2000, 100_000):
        for text in (opening * levels + "1" + closing * levels, opening * levels):
            for read in (parse_json, lambda t: parse_json_at(t, 0)):
                with pytest.raises(json.JSONDecodeError) as caught:
                    read(text)
                assert str(caught.value).startswith("More than 100 levels deep: line 1 column ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1,\n "b": {"a": 2, "a": 3}}', "The key 'a' is given twice: line 2 column 16"),
        ('{"a": 1, "\\u0061": 2}', "The key 'a' is given twice: line 1 column 10"),
        ('{"a": ["a", "a"], "b": [{"a": 1}, {"a": 1}]}', ""),
        ("[NaN]", "It contains NaN"),
        ('{"a": -Infinity}', "It contains -Infinity"),
    ],
)
def test_what_a_person_writes_is_read_strictly(text: str, words: str) -> None:
    """Elsewhere the last value of a key counts, and logs contain NaN."""
    parse_json(text)
    if words:
        with pytest.raises(json.JSONDecodeError) as caught:
            parse_json(text, strict=True)
        assert words in str(caught.value)
    else:
        parse_json(text, strict=True)
    assert parse_record('{"a": 1, "a": 2}') == {"a": 2}
    assert math.isnan((parse_record('{"loss": NaN}') or {})["loss"])


@pytest.mark.parametrize(
    "data", [b"\xff", "[1]".encode("utf-16"), b"9" * 5000, b"", b'{"a": "geheim', b"{} {}"]
)
def test_every_failure_is_one_error_that_quotes_no_value(data: bytes) -> None:
    with pytest.raises(json.JSONDecodeError) as caught:
        parse_json(data)
    assert "line 1 column" in str(caught.value)
    assert "geheim" not in str(caught.value)


def test_the_size_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreignjson, "MAX_JSON_BYTES", 4)
    assert parse_json("1234") == 1234
    with pytest.raises(json.JSONDecodeError, match="Larger than"):
        parse_json(b"12345")


def test_nothing_else_parses_foreign_json() -> None:
    """A new call of a parser uses the reader, or gives its reason in `OWN`."""
    files = [p for room in ("pairun", "modules", "bundle") for p in (ROOT / room).rglob("*.py")]
    texts = {p: p.read_text() for p in files if "builtin" not in p.parts}
    found = {
        path.relative_to(ROOT).as_posix()
        for path, text in texts.items()
        if re.search("json|raw_decode", text) and any(parses_json(ast.parse(text)))
    }
    assert found == set(OWN)


def parses_json(tree: ast.AST) -> Iterator[bool]:
    """Whether each part of a program reads JSON without a bound; ``response.json()`` counts."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            module = isinstance(node.value, ast.Name) and node.value.id == "json"
            yield module and node.attr in ("load", "loads", "JSONDecoder", "decoder", "scanner")
            yield node.attr == "raw_decode"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func.attr == "json" and not node.args
        elif isinstance(node, ast.ImportFrom):
            names = {a.name for a in node.names} - {"JSONDecodeError"}
            yield (node.module or "").partition(".")[0] == "json" and bool(names)
        elif isinstance(node, ast.Import):
            yield any(a.name.startswith("json.") for a in node.names)
            yield any(a.name == "json" and a.asname is not None for a in node.names)

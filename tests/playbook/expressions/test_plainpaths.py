"""Expressions that only name a value: the answers are Jinja's."""

from __future__ import annotations

from typing import Any

import pytest

from pairun.module import Secret
from pairun.playbook.expressions import template
from pairun.playbook.expressions.plainpaths import NOT_PLAIN, plain_condition, plain_expression
from pairun.playbook.expressions.template import Scope
from pairun.playbook.expressions.views import Partial, Unknown

NAMES: dict[str, Any] = {
    "a": {"b": {"c": [1, (2.5, None)], "items": "an entry"}, "empty": {}, "no": False, "zero": 0},
    "text": "a text", "n": None, "nothing": [], "in": 1, "range": 2, "true": 3,
    "later": Unknown("it is not known"), "listed": Unknown("not yet", frozenset({"x"})), "part": Partial({"known": "x", "deep": {"s": "y"}}, "why"),
    "s": Secret("a secret"), "mixed": {"plain": 1, "s": Secret("a secret")},
    "waiting": {"plain": 1, "later": Unknown("it is not known")},
}  # fmt: skip
PLAIN = [
    "a", "a.b", "a.b.c", "a.b.items", "a.empty", "a.no", "a.zero", "text", "n", "nothing",
    "part.known", "part.deep", "part.deep.s", "mixed.plain", "waiting.plain",
]  # fmt: skip
FOR_JINJA = [
    "a.keys", "a.missing", "missing", "text.upper", "listed.y", "part", "part.other", "s", "mixed",
    "mixed.s", "waiting", "waiting.later", "in", "range", "true", "a.b.c.first", "a['b']",
    "a | length", "not a", "", "a.", "text ~ text",
]  # fmt: skip


@pytest.fixture
def by_jinja(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What Jinja says, asked past the short way."""

    def ask(ask_template: Any, text: str) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(template, "plain_expression", lambda *_: NOT_PLAIN)
            patch.setattr(template, "plain_condition", lambda *_: NOT_PLAIN)
            patch.setattr(template, "simple_text", lambda _: None)
            patch.setattr(template, "simple_condition", lambda _: None)
            return ask_template(text, None, Scope(NAMES))

    return ask


@pytest.mark.parametrize("path", PLAIN)
@pytest.mark.parametrize("form", ["{{{{ {} }}}}", "{{{{{}}}}}", "{{{{  {}  }}}}"])
def test_a_plain_value_is_what_jinja_says(path: str, form: str, by_jinja: Any) -> None:
    """Of the same type, and a copy: what is done to it later changes no scope."""
    text = form.format(path)
    value = plain_expression(text, NAMES)
    expected = by_jinja(template.render, text)
    assert value == expected
    assert type(value) is type(expected)
    assert template.render(text, None, Scope(NAMES)) == expected
    if isinstance(value, dict | list):
        assert value is not plain_expression(text, NAMES)


@pytest.mark.parametrize("path", PLAIN)
def test_its_truth_is_what_jinja_says(path: str, by_jinja: Any) -> None:
    """As the bare expression of a condition."""
    assert plain_condition(path, NAMES) is by_jinja(template.condition, path)


@pytest.mark.parametrize(
    "path", ["later", "later.x", "later.x.y", "listed", "listed.x", "listed.x.y"]
)
def test_a_part_of_an_unknown_is_as_unknown_as_jinja_says(path: str, by_jinja: Any) -> None:
    """With the same reason; only Jinja determines the truth of an unknown."""
    text = "{{ " + path + " }}"
    assert template.render(text, None, Scope(NAMES)) == by_jinja(template.render, text)
    assert plain_condition(path, NAMES) is NOT_PLAIN


@pytest.mark.parametrize("path", FOR_JINJA)
def test_everything_else_is_left_to_jinja(path: str) -> None:
    """Parts that are unknown, secrets, missing names, methods, operators, and words that Jinja takes otherwise."""
    assert plain_expression("{{ " + path + " }}", NAMES) is NOT_PLAIN
    assert plain_condition(path, NAMES) is NOT_PLAIN


@pytest.mark.parametrize(
    "text", ["{{- a -}}", "x {{ a }}", "{{ a }} ", "{{ a }}\n", "{% if a %}", "a\n"]
)
def test_other_texts_are_left_to_jinja(text: str) -> None:
    """Only a whole expression keeps the type of its value."""
    assert plain_expression(text, NAMES) is NOT_PLAIN
    assert plain_condition(text, NAMES) is NOT_PLAIN

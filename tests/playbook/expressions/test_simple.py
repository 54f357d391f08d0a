"""Simple expressions: the results, and the errors, are Jinja's."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pairun.errors import PairunError
from pairun.module import Secret
from pairun.playbook.expressions import template
from pairun.playbook.expressions.simple import simple_condition, simple_text
from pairun.playbook.expressions.template import Scope
from pairun.playbook.expressions.views import Partial, Unknown
from tests.effort import cases

ROOT = Path(__file__).parents[3]
UNKNOWN = Unknown("what is not known")
NAMES: dict[str, Any] = {
    "a": {"b": "text", "c": [1, "x", None], "items": "an entry", "empty": {}, "no": False},
    "n": None, "one": 1, "yes": True, "x": "x", "none_at_all": [], "texts": ["x", "y"],
    "calls": [{"event": "start", "commands": ["one", "two"]}, {"event": "end", "commands": []},
              {"event": "start", "commands": ["three"]}],
    "half": [{"event": UNKNOWN, "commands": ["one"]}, {"event": "end", "commands": UNKNOWN}],
    "later": UNKNOWN, "listed": Unknown("not yet", frozenset({"x"})),
    "optional": Unknown("perhaps", optional=True), "part": Partial({"known": "x"}, "why"),
    "s": Secret("a secret"), "login": {"user": "x", "password": Secret("a secret")},
}  # fmt: skip


def result(evaluate: Callable[[], Any]) -> Any:
    """A value with its type, or the problems."""
    try:
        value = evaluate()
    except PairunError as e:
        return [(p.id, p.message, p.hint) for p in e.problems]
    shown = value.reveal() if isinstance(value, Secret) else value
    # the text of a view has its address
    return (type(value), re.sub(" at 0x[0-9a-f]+", "", repr(shown)).lower())


def by_both(evaluate: Callable[..., Any], text: str) -> tuple[Any, Any]:
    """The result with the simple evaluation first, and that of Jinja alone."""
    scope = Scope(NAMES)
    with pytest.MonkeyPatch.context() as patch:
        simple = result(lambda: evaluate(text, None, scope))
        patch.setattr(template, "simple_text", lambda _: None)
        patch.setattr(template, "simple_condition", lambda _: None)
        return simple, result(lambda: evaluate(text, None, scope))


SIMPLE = [
    "x == 'x'", "a.b != 'x'", "not x", "x in texts", "one not in a.c", "'x' in 'xyz'",
    "a.missing | default('d')", "missing | default(none)", "missing | d", "n | default('d', true)",
    "(n or {}).key | default([])", "(optional or {}).key | default([])", "a.empty.x | default(1)",
    "part.other | default('d') == 'd'", "optional | default('true') == 'true'", "later == 'x'",
    "later or true", "later and false", "not later", "not (later or x)", "(later or none_at_all) and x", "x or later", "yes | string | lower == 'true'",
    "one | string", "a | string", "none_at_all | length", "texts | length == 2", "['x', one, n]",
    "texts + none_at_all", "none_at_all + [one]", "later + texts", "(texts + ['z']) | join(', ')",
    "a.c | join('-')", "a.b | join('.')", "later | join", "x | list", "a | list", "later | list",
    "calls | selectattr('event', 'equalto', 'start') | list",
    "calls | selectattr('event', 'in', ['end', 'start']) | map(attribute='commands') | list",
    "calls | selectattr('event', 'equalto', 'start') | map(attribute='commands') | sum(start=[]) | join('\\n')",
    "half | selectattr('event', 'equalto', 'end') | list",
    "half | map(attribute='commands') | sum(start=[])", "half | map(attribute='event') | list",
    "none_at_all | selectattr('event', 'in', x) | list", "later | selectattr('a', 'in', x) | list",
    "'\\u00e4\\t\"' == \"'\"", "s == 'a secret'", "login.password", "login | length",
    "0 == one", "true == True", "none != None", "{}", "[]", "{} == a.empty", "'}}' == x",
    "a", "a.b", "a.c", "a.empty", "a.no", "a.b.items", "n", "none_at_all", "part.known", "part", "part.other",
    "later.x.y", "listed", "listed.x", "login", "s", "half", "calls",
    "a.keys", "a.missing", "missing", "x.upper", "listed.y", "a.c.first",  # evaluated by Jinja
    "a .b", "( x )", "x if", "login.user | default('d')", "calls | map(attribute='event')",
]  # fmt: skip
FOR_JINJA = [
    "x | upper", "a['b']", "x ~ x", "x if yes else n", "x is defined", "1.5", "1_0", "007", "0x1",
    "x == x == x", "x < one", "-one", "x | join(d='x',)", "a.items()", "range", "loop", "'a' 'b'",
    "{'a': 1}", "(x, one)", "x, one", "x |", "| x", "x)", "'x", "x.'a'", "a.", ".a", "x y", "",
    "in",     "x | default(", "f(x)", "é", "x\r== 'x'", "(" * 250 + "x" + ")" * 250, "x #", "x | a.b",
]  # fmt: skip


@pytest.mark.parametrize("expression", SIMPLE)
@pytest.mark.parametrize("form", ["{{{{ {} }}}}", "{{{{{}}}}}", "say {{{{{} }}}}, {{{{ x }}}}!\n"])
def test_a_text_is_what_jinja_makes_of_it(expression: str, form: str) -> None:
    """A value keeps its type; within a text it becomes text."""
    text = form.format(expression)
    simple, expected = by_both(template.render, text)
    assert simple == expected


@pytest.mark.parametrize("expression", SIMPLE + FOR_JINJA)
def test_a_condition_is_as_true_as_jinja_says(expression: str) -> None:
    """Known, unknown, secret, or an error with the same words."""
    simple, expected = by_both(template.condition, expression)
    assert simple == expected


@pytest.mark.parametrize("expression", [e for e in SIMPLE if e != "x if"])
def test_what_is_simple_is_parsed_without_jinja(expression: str) -> None:
    """With the names that Jinja finds in it."""
    parsed = simple_condition(expression)
    assert parsed is not None
    from pairun.playbook.expressions.jinjacode import prepare_condition

    assert parsed.names == prepare_condition(expression, None).names


@pytest.mark.parametrize("expression", FOR_JINJA)
def test_what_is_not_simple_is_left_to_jinja(expression: str) -> None:
    """Other operators, filters and literals, and what is no expression at all."""
    assert simple_condition(expression) is None
    assert simple_text("{{ " + expression + " }}") is None


@pytest.mark.parametrize(
    "text", ["{{- x -}}", "{% if x %}", "{{ x }}{% if x %}", "a\r\n{{ x }}", "{{ x }", "{{ x", "x"]
)
def test_other_delimiters_are_left_to_jinja(text: str) -> None:
    """Statements, signs at a delimiter, line ends that Jinja changes, unclosed expressions."""
    assert simple_text(text) is None


_TOKENS = [
    *NAMES, "missing", "b", "c", "x", "event", "'x'", "'start'", '"\\n"', "0", "1", "12", "{}", "[]", "[", "]", "(", ")",
    ",", ".", "|", "|", "==", "!=", "=", "+", "-", "and", "or", "not", "in", "is", "if", "else", "true", "none",
    "default", "default('x')", "lower", "string", "list", "length", "join", "sum(start=[])", "selectattr('event', 'in', texts)",
    "map(attribute='commands')", "{{", "}}", "\n", "upper", "range", "loop",
]  # fmt: skip


@given(st.lists(st.sampled_from(_TOKENS), max_size=12), st.sampled_from([" ", ""]))
@settings(max_examples=cases(60), deadline=None)
def test_any_tokens_are_what_jinja_makes_of_them(tokens: list[str], space: str) -> None:
    """Whatever both accept has one result; whatever fails has one error."""
    expression = space.join(tokens)
    for evaluate, text in (
        (template.condition, expression),
        (template.render, "{{" + space + expression + space + "}}"),
        (template.render, "a {{" + expression + "}} b"),
    ):
        simple, expected = by_both(evaluate, text)
        assert simple == expected, text


_ATOMS = st.sampled_from(
    [*NAMES, "a.b", "a.c", "part.known", "part.other", "listed.x", "login.password",      "missing", "'x'", "0", "[]", "{}", "['x', one]", "true", "none"]
)  # fmt: skip
_EXPRESSIONS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or", "==", "!=", "in", "not in", "+"]), inner).map(
            " ".join
        ),
        inner.map(lambda e: f"not {e}"),
        inner.map(lambda e: f"({e})"),
        st.tuples(
            inner,
            st.sampled_from(
                ["default('d')", "default(n, true)", "string", "lower", "list", "length", "join('-')",
                 "selectattr('event', 'equalto', 'start')", "map(attribute='event')", "sum(start=[])"]
            ),
        ).map(" | ".join),
    ),
    max_leaves=5,
)  # fmt: skip


@given(_EXPRESSIONS)
@settings(max_examples=cases(60), deadline=None)
def test_any_expression_is_what_jinja_makes_of_it(expression: str) -> None:
    """Valid expressions of every shape, over known, unknown and secret values."""
    for evaluate, text in (
        (template.condition, expression),
        (template.render, "{{ " + expression + " }}"),
        (template.render, "a {{ x }} {{ " + expression + " }}"),
    ):
        simple, expected = by_both(evaluate, text)
        assert simple == expected, text


def test_the_default_playbooks_need_no_jinja() -> None:
    """The review of a job without expressions of its own does not import Jinja."""
    code = (
        "import sys\nfrom pairun.cli.main import main\n"
        "assert main(['--dry-run', sys.argv[1]]) == 0\nassert 'jinja2' not in sys.modules\n"
    )
    for name in ("hello", "two-roles"):
        job = ROOT / "examples" / f"{name}.yaml"
        subprocess.run([sys.executable, "-c", code, job], check=True, capture_output=True)


@pytest.mark.parametrize("file", ["playbooks/init.yaml", "playbooks/runtime.yaml", "plugin_specs/cmd.yaml",
                                  "plugin_specs/ssh.yaml", "plugin_specs/teamwise_storage.yaml"])  # fmt: skip
def test_the_expressions_of_common_plugins_are_simple(file: str) -> None:
    """A spec that most jobs use is written with simple expressions."""

    def texts(value: Any, key: str = "") -> list[tuple[str, str]]:
        if isinstance(value, dict):
            return [each for k, v in value.items() for each in texts(v, k)]
        if isinstance(value, list):
            return [each for v in value for each in texts(v, key)]
        return [(key, value)] if isinstance(value, str) else []

    for key, text in texts(yaml.safe_load((ROOT / file).read_text())):
        if key == "when":
            assert simple_condition(text) is not None, text
        elif "{{" in text:
            assert simple_text(text) is not None, text

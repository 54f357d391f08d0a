"""Expressions: three-valued, typed, bounded, and what they insert is data."""

from __future__ import annotations

import itertools
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from jinja2.meta import find_undeclared_variables

from pairun.base.cpulimit import CpuBudget, CpuLimitError
from pairun.errors import PairunError, Place, Problem, Source
from pairun.module import Secret, reveal
from pairun.plan import Late
from pairun.playbook.expressions.jinjacode import _names_in
from pairun.playbook.expressions.sandbox import ENVIRONMENT
from pairun.playbook.expressions.template import (
    Scope,
    condition,
    is_template,
    render,
    resolve,
)
from pairun.playbook.expressions.views import Partial, Unknown, work

ROOT = Path(__file__).parents[3]

NAMES: dict[str, Any] = {
    "n": 5,
    "text": "abc",
    "yes": True,
    "nothing": None,
    "numbers": [1, 2, 3],
    "deep": {"a": {"b": [10, 20]}, "with-dash": 1},
    "token": Secret("hunter2hunter2"),
    "login": {"user": "anna", "password": Secret("hunter2hunter2")},
    "cluster": Unknown("the addresses of the peers", frozenset({"own", "roles"})),
    "results": Unknown("the results of tasks before it", frozenset({"clone"})),
    "env": Partial({"HOME": "/root"}, "the environment of the Pod"),
    "extension": Unknown("what is mounted", optional=True),
}


def scope(*, statements: bool = True, **more: Any) -> Scope:
    """The names above, and more."""
    return Scope({**NAMES, **more}, statements)


def problem_of(text: str, *, statements: bool = True, when: bool = False) -> Problem:
    """What is wrong with an expression."""
    with pytest.raises(PairunError) as e:
        (condition if when else render)(text, None, scope(statements=statements))
    (problem,) = e.value.problems
    return problem


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{{ n }}", 5),
        ("{{ -n }}", -5),
        ("{{ -5 }}", -5),
        ("{{- n -}}", 5),
        ("{{ n - 1 }}", 4),
        ("{{ n / 2 }}", 2.5),
        ("{{ n > 3 }}", True),
        ("{{ nothing }}", None),
        ("{{ text }}", "abc"),
        ("{{ 'a-' }}", "a-"),
        ("{{ '5' }}", "5"),
        ("{{ numbers }}", [1, 2, 3]),
        ("{{ numbers + [4] }}", [1, 2, 3, 4]),
        ("{{ numbers[1:] }}", [2, 3]),
        ("{{ deep }}", {"a": {"b": [10, 20]}, "with-dash": 1}),
        ("{{ deep.a.b[1] }}", 20),
        ("{{ deep['with-dash'] }}", 1),
        ("{{ {'k': numbers | first} }}", {"k": 1}),
        ("{{ range(3) }}", [0, 1, 2]),
        ("{{ nope | default(3) }}", 3),
        ("{{ deep.nope | default([]) }}", []),
        ("{{ nope is defined }}", False),
        ("{{ env.HOME }}", "/root"),
        ("n is {{ n }}", "n is 5"),
        ("{{ n }}{{ n }}", "55"),
        ("{{ yes }} {{ nothing }}.", "true ."),
        ("{{ numbers }}!", "[1, 2, 3]!"),
        ("{{ numbers | map('string') }}!", '["1", "2", "3"]!'),
        ("{{ yes | lower }} {{ nothing | upper }} {{ n | trim }}", "true NONE 5"),
        ("{{n}}", 5),
        ("{{ deep.a }}", {"b": [10, 20]}),
        ("{{ deep | tojson }}", '{"a": {"b": [10, 20]}, "with-dash": 1}'),
        ("{{ 'a b' | quote }}", "'a b'"),
        ("{{ '/a/b.c' | basename }}", "b.c"),
        ("{{ numbers | map('string') | join(', ') }}", "1, 2, 3"),
        ("{{ [{'x': 1}, {'x': 2}] | join('+', attribute='x') }}", "1+2"),
        ("{{ text ~ n ~ numbers }}", "abc5[1, 2, 3]"),
        ("${#list[@]} {{ n }}", "${#list[@]} 5"),
        ("{% for i in numbers %}{{ i }}{% if not loop.last %},{% endif %}{% endfor %}", "1,2,3"),
    ],
)
def test_a_value(text: str, value: Any) -> None:
    """A single expression keeps its type; in a text, values are written as YAML would."""
    made = render(text, None, scope())
    assert made == value
    assert type(made) is type(value)


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("yes", True),
        ("not yes", False),
        ("n > 3\nand n < 9", True),
        ("numbers", True),
        ("''", False),
        ("nothing is none", True),
        ("cluster.own", None),
        ("not cluster.own.x", None),
        ("cluster.own or yes", True),
        ("yes or cluster.own", True),
        ("cluster.own and not yes", False),
        ("cluster.own.port > 3 or n == 5", True),
        ("cluster.own.port == 3 and n == 4", False),
        ("cluster.own.name == 'a'", None),
        ("cluster.own.name in ['a', 'b']", None),
        ("cluster.own.name in 'abc'", None),
        ("'a' in cluster.own.names", None),
        ("cluster.own is none", None),
        ("cluster.own is string", None),
        ("cluster.own is defined", True),
        ("10 / cluster.own.count > 2", None),
        ("cluster.own.count ** 2 > 2", None),
        ("cluster.own.count | round > 2", None),
        ("cluster.own.count | abs > 2", None),
        ("cluster.own.names | length > 2", None),
        ("cluster.own.names | select('equalto', 'a') | list", None),
        ("results.clone.values.sha", None),
        ("extension is defined", None),
        ("extension is defined or yes", True),
        ("env.HOME == '/root'", True),
        ("env.OTHER == '/root'", None),
        ("env.OTHER | default('x') == 'x'", None),
        ("cluster.own or not cluster.own", None),
        ("token", True),
    ],
)
def test_a_condition_is_true_false_or_not_known(text: str, truth: bool | None) -> None:
    """What only the run can tell stays open, unless the answer is the same either way."""
    answer = condition(text, None, scope())
    if truth is None:
        assert isinstance(answer, Late)
        assert answer.because
    else:
        assert answer is truth


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("{{ nope }}", "nope"),
        ("{{ nope.a.b }}", "nope"),
        ("{{ deep.a.c }}", "deep.a.c"),
        ("{{ deep.a.c.d }}", "deep.a.c"),
        ("{{ deep['a']['c'] }}", "deep.a.c"),
        ("{{ deep.a.b[2] }}", "deep.a.b[2]"),
        ("{{ cluster.nope }}", "cluster.nope"),
        ("{{ results.clne.values }}", "results.clne"),
        ("{{ deep.x | default(1) + deep.a.c }}", "deep.a.c"),
        ("{{ deep.nope.x | default(1) }}", "deep.nope"),
        ("{{ text.format }}", "text.format"),
        ("{{ text.__class__ }}", "text.__class__"),
        ("{{ deep.__class__ }}", "deep.__class__"),
        ("{{ numbers.append }}", "numbers[append]"),
        ("{{ lipsum }}", "lipsum"),
    ],
)
def test_an_undefined_name_is_said_with_its_whole_path(text: str, path: str) -> None:
    """The error names the first step that does not exist, dotted from the top."""
    problem = problem_of(text)
    assert (problem.id, problem.message) == ("PR301", f"'{path}' is not defined")


def test_an_undefined_name_has_a_caret_and_the_nearest_name() -> None:
    """The caret stands at the name, within a text and in a block of lines."""
    source = Source(
        "f", "built-in", "name: the {{ n }} {{ deep.a.bb }}\nscript: |\n  {{ n }}\n  {{ txt }}\n"
    )
    with pytest.raises(PairunError) as e:
        render("the {{ n }} {{ deep.a.bb }}", Place(source, 1, 7), scope())
    (problem,) = e.value.problems
    assert str(problem.place) == "f:1:22"
    assert problem.hint == "did you mean 'b'?"
    with pytest.raises(PairunError) as e:
        render("{{ n }}\n{{ txt }}\n", Place(source, 2, 9), scope())
    (problem,) = e.value.problems
    assert str(problem.place) == "f:4:6"
    assert problem.hint == "did you mean 'text'?"


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("{{ n }} {{ n ! }} {{ n }}", 9),
        ("{{ n }} {{ n | nofilter }}", 9),
        ("{{ n }} {{ n", 9),
        ("{{ n }} {% for %}", 9),
        ("{{ n ! }} {{ n ! }}", 1),
    ],
)
def test_the_caret_of_a_syntax_error_is_at_its_expression(text: str, column: int) -> None:
    for written, line in ((text, 1), (f"|\n  {text}\n", 2)):
        source = Source("f", "built-in", written)
        with pytest.raises(PairunError) as e:
            render(text, Place(source, 1, 1), scope())
        (problem,) = e.value.problems
        assert problem.id == "PR302"
        assert str(problem.place) == f"f:{line}:{column + 2 * (line - 1)}"


def test_the_caret_never_moves_to_a_neighbours_expression() -> None:
    """An error of a bare condition points at the condition, not at braces in the next line."""
    source = Source("f", "built-in", "when: n ==\ncmd: {argv: ['{{ n }}']}\n")
    with pytest.raises(PairunError) as e:
        condition("n ==", Place(source, 1, 7), scope())
    assert str(e.value.problems[0].place) == "f:1:7"


@pytest.mark.parametrize(
    ("text", "id_"),
    [
        ("{{ deep | lower }}", "PR305"),
        ("{{ numbers | upper }}", "PR305"),
        ("{{ [deep] | trim }}", "PR305"),
        ("{{ deep | quote }}", "PR305"),
        ("{{ deep | basename }}", "PR305"),
        ("{{ text | replace('b', deep) }}", "PR305"),
        ("{{ numbers | map('string') | lower }}", "PR305"),
        ("a {{ text.upper }}", "PR305"),
        ("a {{ deep.items }}", "PR305"),
        ("a {{ range }}", "PR305"),
        ("{{ nope | lower }}", "PR301"),
        ("{{ n", "PR302"),
        ("{{ }}", "PR302"),
        ("{{ 1 2 }}", "PR302"),
        ("{{ n | nofilter }}", "PR302"),
        ("{{ n is notest }}", "PR302"),
        ("{% for %}", "PR302"),
        ("{{ 'a' < 1 }}", "PR305"),
        ("{{ 1 / 0 }}", "PR305"),
        ("{{ deep.items }}", "PR305"),
        ("{{ '%s' % n }}", "PR305"),
        ("{% include 'other' %}", "PR305"),
        ("{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}", "PR305"),
    ],
)
def test_an_expression_that_is_none_or_fails(text: str, id_: str) -> None:
    """Bad syntax and failing operations are errors with an id, never exceptions."""
    assert problem_of(text).id == id_


@pytest.mark.parametrize("text", ["yes)", "1) else 2 }}abc", "yes) or (yes", "n ==", "a b"])
def test_a_condition_is_one_whole_expression(text: str) -> None:
    """A condition cannot close what it is evaluated in."""
    assert problem_of(text, when=True).id == "PR302"


@pytest.mark.parametrize(
    "text",
    [
        "{% if n %}x{% endif %}",
        "{% set x = 1 %}{{ x }}",
        "a{% for i in numbers %}{{ i }}{% endfor %}",
    ],
)
def test_a_jobs_layer_has_no_statements(text: str) -> None:
    """Expressions only: a statement in a job is refused, and the way to say it is shown."""
    problem = problem_of(text, statements=False)
    assert problem.id == "PR303"
    assert "a if b else c" in str(problem.hint)


@pytest.mark.parametrize(
    "text",
    [
        "{{ token }}",
        "x{{ token }}y",
        "{{ token | length }}",
        "{{ n if token else 1 }}",
        "{{ {'a': token} }}",
        "{{ login }}",
        "{{ login.password }}",
        "{{ login | tojson }}",
        "{{ [token][0] | upper }}",
    ],
)
def test_an_expression_that_touches_a_secret_yields_a_secret(text: str) -> None:
    """Whatever is made of a secret is one, its length included."""
    assert isinstance(render(text, None, scope()), Secret)


def test_what_does_not_touch_the_secret_stays_open() -> None:
    """The neighbour of a secret is no secret."""
    assert render("{{ login.user }}", None, scope()) == "anna"


def test_a_failing_expression_never_says_the_secret() -> None:
    """An exception's text can hold the value, so none is shown once a secret was touched."""
    problem = problem_of("{{ 1 + token }}")
    assert problem.id == "PR305"
    assert "hunter2" not in problem.message


@pytest.mark.parametrize(
    "text",
    [
        "{{ 9**9**9 }}",
        "{{ 'a' * 10**10 }}",
        "{{ [1] * 10**10 }}",
        "{{ range(10**9) | list }}",
        "{{ ('a' * 1000000) | replace('a', 'b' * 1000000) }}",
        "{{ (['a' * 1000000] * 1000000) | join }}",
        "{{ (['a' * 1000000] * 10000) | map('upper') | list | length }}",
        "{{ (['a' * 1000000] * 10000) | map('list') | list | length }}",
        "{{ " + " ~ ".join(["('a' * 900000)"] * 2000) + " }}",
        "{{ " + " ~ ".join(["big"] * 3000) + " }}",
        "{{ big }}" * 3000,
        "{{ [" + ",".join(["'a' * 1000000"] * 2000) + "] }}",
        "{{ " + " + ".join(["([0] * 900000)"] * 100) + " }}",
        "{{ " + " * ".join(["10000 ** 64"] * 100) + " }}",
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        "{% for a in range(1000) %}{% for b in range(1000) %}{{ 'a' * 100 }}{% endfor %}{% endfor %}",
        "{{ '" + "a" * 1_000_001 + "' }}",
    ],
    ids=range(17),
)
def test_a_runaway_expression_is_stopped(text: str) -> None:
    """Powers, repetition and text that explodes are errors at once, in little memory."""
    begun, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(PairunError) as e:
        render(text, None, scope(big="x" * 1_000_000))
    assert e.value.problems[0].id == "PR304"
    assert time.process_time() - begun < 8
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000  # KiB


def test_nested_loops_end_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """What makes nothing and never ends is stopped after its seconds."""
    monkeypatch.setattr("pairun.playbook.expressions.template.MAX_SECONDS", 0.2)
    loops = "".join(f"{{% for a{i} in range(10000) %}}" for i in range(3)) + "{% endfor %}" * 3
    begun = time.process_time()
    assert problem_of(loops).id == "PR304"
    assert time.process_time() - begun < 4


def test_all_expressions_of_a_job_share_one_budget() -> None:
    """What one expression takes is not there for the next, whichever way it is evaluated."""
    with work.charged_to(CpuBudget(0.2)):
        ids = [problem_of("{% for a in range(9) %}" * 9 + "{% endfor %}" * 9).id]
        ids += [problem_of(text).id for text in ("{{ n }}", "{{ n + 1 }}", "{{ text | upper }}")]
        ids.append(problem_of("n > 3", when=True).id)
    assert ids == ["PR304"] * 5
    assert render("{{ n + 1 }}", None, scope()) == 6


def test_work_that_catches_every_exception_is_stopped_all_the_same() -> None:
    """Jinja catches exceptions while it evaluates constants."""

    def catching() -> None:
        stops = 0
        while True:
            try:
                while True:
                    pass
            except CpuLimitError:
                stops += 1
                if stops == 2:
                    raise

    with pytest.raises(CpuLimitError):
        CpuBudget(0.01).spend(catching)


def test_the_limit_is_one_error_at_every_moment_of_an_evaluation() -> None:
    """The signal arrives at the n-th start or end of a function, for every n."""
    ids: list[str] = []

    def evaluated(moment: int) -> bool:
        left = moment

        def stop(*_: object) -> None:
            nonlocal left
            left -= callable(signal.getsignal(signal.SIGVTALRM))
            if left == 0:
                sys.setprofile(None)
                signal.raise_signal(signal.SIGVTALRM)

        sys.setprofile(stop)
        try:
            render("{{ n + 1 }}", None, scope())
        except PairunError as e:
            ids.append(e.problems[0].id)
        finally:
            sys.setprofile(None)
        assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)
        assert signal.getsignal(signal.SIGVTALRM) == signal.SIG_DFL
        return left <= 0

    for moment in itertools.count(1):
        if not evaluated(moment):
            break
    assert moment > 20
    assert set(ids) == {"PR304"}


@pytest.mark.parametrize("name", ["hello.yaml", "two-roles.yaml"])
def test_the_default_playbooks_need_no_jinja(name: str, tmp_path: Path) -> None:
    """The review of a job without expressions of its own, but with callbacks, imports no Jinja."""
    code = (
        "import sys\nfrom pairun.cli.main import main\n"
        "assert main(['--dry-run', sys.argv[1]]) == 0\nassert 'jinja2' not in sys.modules\n"
    )
    job = tmp_path / name
    lines = (ROOT / "examples" / name).read_text().splitlines(keepends=True)
    job.write_text("".join(line for line in lines if "when:" not in line))
    subprocess.run([sys.executable, "-c", code, job], check=True, capture_output=True)


class Slow(dict[str, str]):
    """A mapping of a machine that has no time for this process."""

    def __getitem__(self, key: str) -> str:
        time.sleep(0.5)
        return super().__getitem__(key)


def test_a_busy_machine_makes_no_expression_invalid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only CPU time counts: waiting for the processor is no fault of the text."""
    monkeypatch.setattr("pairun.playbook.expressions.template.MAX_SECONDS", 0.2)
    assert render("{{ slow.a }}", None, scope(slow=Slow(a="there"))) == "there"


def test_many_unknowns_are_not_tried_in_every_combination() -> None:
    """Thirty unknown truths are simply unknown, quickly."""
    begun = time.process_time()
    text = " and ".join(f"(cluster.own.a{i} or n)" for i in range(30)) + " and cluster.own.z"
    assert isinstance(condition(text, None, scope()), Late)
    assert time.process_time() - begun < 4


# --- late values ---------------------------------------------------------------------------------


def late(text: str, **more: Any) -> Late:
    """A value that only the run can tell."""
    value = render(text, None, scope(**more))
    assert isinstance(value, Late)
    return value


def test_a_late_value_resolves_at_the_run() -> None:
    """What was known is kept, what was not is asked for, and the type is kept."""
    value = late("{{ results.clone.values.port + n }}")
    assert resolve(value, {"results": {"clone": {"values": {"port": 8}}}, "env": {}}) == 13
    value = late("{{ cluster.own.host }}:{{ n }}")
    assert resolve(value, {"cluster": {"own": {"host": "h"}}}) == "h:5"


def test_a_late_variable_resolves_at_any_depth() -> None:
    """A variable that holds late values in a mapping or list resolves with what uses it."""
    inner = late("{{ results.clone.values.sha }}")
    value = late("{{ paths.code.sha ~ all[0] }}", paths={"code": {"sha": inner}}, all=[inner])
    assert resolve(value, {"results": {"clone": {"values": {"sha": "c0"}}}}) == "c0c0"


def test_a_late_value_keeps_secrets_secret() -> None:
    """A secret among what was known makes the resolved value a secret."""
    value = resolve(
        late("{{ results.clone.values.x ~ token }}"), {"results": {"clone": {"values": {"x": "a"}}}}
    )
    assert isinstance(value, Secret)
    assert reveal(value) == "ahunter2hunter2"


def test_a_late_value_that_is_still_unknown_says_so() -> None:
    """A result that never came about is an error with the place of the expression."""
    with pytest.raises(PairunError) as e:
        resolve(late("{{ results.clone.values.x }}"), {"results": {}})
    assert e.value.problems[0].id == "PR301"


def test_a_late_expression_cannot_reach_names_outside_its_scope() -> None:
    """What is left for the run sees the names of its layer only: a job never sees env."""
    hidden = Scope({n: v for n, v in NAMES.items() if n != "env"}, statements=False)
    with pytest.raises(PairunError) as e:
        render("{{ (results.clone.values.x | length) ~ env.TOKEN }}", None, hidden)
    assert e.value.problems[0].message == "'env' is not defined"


@pytest.mark.parametrize(
    "text",
    ["{{ value }}", "a {{ value }} b", "{{ [value] }}", "{{ {'k': value} }}", "{{ value ~ '' }}"],
)
def test_inserted_text_is_never_rendered_again(text: str) -> None:
    """Braces in data stay braces, in a value that is known and in one that comes late."""
    data = "{{ 7*7 }}{% set x = 1 %}"
    assert "49" not in str(render(text, None, scope(value=data)))
    assert data in str(render(text, None, scope(value=data)))
    by_run = late(text.replace("value", "results.clone.values.out"))
    found = resolve(by_run, {"results": {"clone": {"values": {"out": data}}}})
    assert data in str(found)
    chained = late("{{ inner }}", inner=late("{{ results.clone.values.out }}"))
    assert resolve(chained, {"results": {"clone": {"values": {"out": data}}}}) == data


@pytest.mark.parametrize(
    ("value", "answer"),
    [("{{ x }}", True), ("a{% b", True), ("a { b", False), (5, False), (None, False)],
)
def test_what_has_something_to_render(value: object, answer: bool) -> None:
    """Only texts with the signs of a template are templates."""
    assert is_template(value) is answer


@pytest.mark.parametrize(
    "text",
    [
        "{{ a.b.c['d'][e] }}",
        "{{ a if b is defined and c in d else e | default(f) }}",
        "x {{ a }} {# b #} {% raw %}{{ c }}{% endraw %} {{ d ~ 'e' }}",
        "{{ range(a) | map(attribute='b') | list + [c, {d: e}] }}",
        "{{ a(b, c=d, *e, **f) }}",
        "{{ self }} {{ dict(a=b) }} {{ not (a == b < c) }}",
        "no expression",
        "",
    ],
)
def test_the_names_of_an_expression_are_those_that_jinja_finds(text: str) -> None:
    """Expressions make no names, so they need every name that is in them."""
    tree = ENVIRONMENT.parse(text)
    assert _names_in(tree) == find_undeclared_variables(tree)


def test_a_missing_part_of_a_constant_is_an_error() -> None:
    """Jinja evaluates what is constant when it compiles."""
    assert problem_of("'x'[()]", when=True).message == "'list[()]' is not defined"

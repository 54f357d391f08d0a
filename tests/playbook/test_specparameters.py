"""Slips in the parameters of a plugin spec are found before a job uses it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairun.errors import Problem, Problems, Source
from pairun.playbook.document.reading import node_of, read_text
from pairun.playbook.linting import check_parameters

HEAD = "summary: S\nparameters:\n  type: object\n  properties: {name: {type: string}, size: {}}\n"


def _problems(text: str) -> list[Problem]:
    problems = Problems()
    check_parameters(read_text(Source("s.yaml", "cluster", text)), problems)
    return list(problems)


def _task(body: str) -> str:
    return f"runtime:\n  - name: N\n    {body}\n"


UNDECLARED = [
    ("cmd: {script: 'echo nmae {{ parameters.nmae }}'}", "nmae }}"),
    ("cmd: {script: \"{{ parameters['nmae'] }}\"}", "nmae"),
    ("cmd: {script: '{% if parameters.nmae %}a{% endif %}'}", "nmae"),
    ("when: parameters.nmae == 1\n    cmd: {argv: [a]}", "nmae"),
    ("cmd: {argv: [a]}\n    environment: {A: '{{ expanded.nmae }}'}", "nmae"),
    (
        "cmd: {argv: [a]}\n    on_exit: [{name: H, cmd: {script: '{{ parameters.nmae | quote }}'}}]",
        "nmae",
    ),
    ("cmd: {script: '{{ parameters.nmae.size }}'}", "nmae"),
]
DECLARED = [
    "cmd: {script: 'echo {{ parameters.name }} {{ parameters.size.x }}'}",
    "cmd: {script: 'echo parameters.nmae'}",
    "cmd: {script: '{% for k, v in parameters.items() %}{{ k }}{% endfor %}'}",
    "cmd: {script: '{{ parameters.get(1) }} {{ job.parameters.nmae }} {{ plugin.nmae }}'}",
    "cmd: {script: '{{ parameters. }}'}",  # no expression: another problem
    "cmd: {script: \"{{ 'parameters.nmae' }}\"}",
]


@pytest.mark.parametrize(("body", "name"), UNDECLARED)
def test_a_parameter_that_is_not_declared(body: str, name: str) -> None:
    """A warning at its name, which proposes the declared one."""
    (problem,) = _problems(HEAD + _task(body))
    assert (problem.id, problem.severity, problem.hint) == (
        "PR930",
        "warning",
        "did you mean 'name'?",
    )
    assert problem.place is not None
    line = problem.place.source.line(problem.place.line)
    assert line[problem.place.column - 1 :].startswith(name)


@pytest.mark.parametrize("body", DECLARED)
def test_a_parameter_that_is_declared(body: str) -> None:
    """Also texts that only look like expressions, and methods."""
    assert _problems(HEAD + _task(body)) == []


@pytest.mark.parametrize(
    "more", ["additionalProperties: true", "patternProperties: {x: {}}", "$ref: '#/x'"]
)
def test_a_schema_that_is_open(more: str) -> None:
    """Where other parameters are meant, none is undeclared."""
    assert _problems(f"{HEAD}  {more}\n" + _task(UNDECLARED[0][0])) == []
    assert _problems("summary: S\nparameters: {type: object}\n" + _task(UNDECLARED[0][0])) == []
    assert _problems("summary: S\n" + _task(UNDECLARED[0][0])) == []


def test_a_parameter_beside_properties() -> None:
    """A parameter that is written as a keyword of the schema bounds nothing."""
    (problem,) = _problems("summary: S\nparameters: {nmae: {}}\n" + _task(UNDECLARED[0][0]))
    assert (problem.id, problem.hint) == ("PR930", "declare it under parameters.properties")


def test_a_required_parameter_without_property() -> None:
    """Nobody could look up what it means."""
    (problem,) = _problems(f"{HEAD}  required: [name, nmae]\n")
    assert (problem.id, problem.hint) == ("PR930", "did you mean 'name'?")
    assert problem.place is not None
    assert problem.place.line == 5


BOUNDS = [
    ("size: {minimum: 3, maximum: 2}", 1),
    ("size: {minimum: 2, maximum: 2}", 0),
    ("size: {minLength: 3, maxLength: 2}", 1),
    ("size: {items: {minItems: 3, maxItems: 2}}", 1),
    ("size: {anyOf: [{minimum: 3, maximum: 2.5}, {minProperties: 2, maxProperties: 1}]}", 2),
    ("size: {default: {minimum: 3, maximum: 2}}", 0),
    ("minimum: {type: integer}, maximum: {type: integer}", 0),
    ("size: {minimum: a, maximum: 2}", 0),
]


@pytest.mark.parametrize(("properties", "count"), BOUNDS)
def test_bounds_that_no_value_fits(properties: str, count: int) -> None:
    """Every job would be refused."""
    problems = _problems(f"summary: S\nparameters: {{properties: {{{properties}}}}}\n")
    assert [p.id for p in problems] == ["PR215"] * count


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["parameters", "properties", "required", "init", "runtime", "when", "minimum",
                         "maximum", "additionalProperties", "cmd", "{{ parameters.x }}"]), inner),
    max_leaves=12,
)  # fmt: skip


@given(_JSON)
def test_any_document(document: object) -> None:
    """Whatever a file says, checking it ends with problems or none."""
    source = Source("s.yaml", "cluster", "")
    place = read_text(source).place
    check_parameters(node_of(document, place), Problems())

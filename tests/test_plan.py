"""The plan as JSON: what goes out comes back, and what is no plan is refused."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairun.contract.loading import ModuleFile
from pairun.errors import PairunError, Problem
from pairun.module import FailureKind, Secret
from pairun.plan import EVENTS, Group, Late, Plan, SecretStore, Task, dump_plan, load_plan
from tests.effort import cases

texts = st.text(max_size=12)
keys = st.one_of(texts, st.sampled_from(["$late", "$secret", "$literal", "$", "parallel"]))
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), texts,
    st.text(min_size=4, max_size=12).map(Secret),
)  # fmt: skip


def lates(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Late]:
    """Values that only the run can tell."""
    return st.builds(
        Late,
        template=texts,
        because=texts,
        where=texts,
        expression=st.booleans(),
        vars=st.dictionaries(keys, values, max_size=2),
    )


data = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3), lates(inner)
    ),
    max_leaves=8,
)
seconds = st.one_of(st.none(), st.floats(0, 1e6))


def tasks(handlers: st.SearchStrategy[tuple[Task, ...]]) -> st.SearchStrategy[Task]:
    """Tasks with every field set."""
    return st.builds(
        Task,
        id=texts,
        name=texts,
        module=texts,
        args=st.dictionaries(keys, data, max_size=3),
        when=st.one_of(st.booleans(), lates(scalars)),
        environment=st.dictionaries(keys, scalars, max_size=2),
        retries=st.integers(0, 99),
        delay_s=st.floats(0, 1e6),
        retry_on=st.lists(st.sampled_from(get_args(FailureKind)), max_size=2).map(tuple),
        timeout_s=seconds,
        deadline_s=seconds,
        failure_policy=st.sampled_from(["fail", "ignore"]),
        exit_codes=st.dictionaries(
            st.sampled_from(get_args(FailureKind)), st.integers(0, 255), max_size=2
        ),
        on_exit=handlers,
        events=st.lists(st.sampled_from(EVENTS), max_size=3).map(tuple),
        where=texts,
    )


whole_tasks = tasks(st.lists(tasks(st.just(())), max_size=2).map(tuple))
groups = st.builds(
    Group, name=texts, tasks=st.lists(whole_tasks, max_size=2).map(tuple), where=texts
)
files = st.builds(ModuleFile, path=texts, sha256=texts, built_in=st.booleans())
plans = st.builds(
    Plan,
    phase=st.sampled_from(["init", "runtime"]),
    steps=st.lists(st.one_of(whole_tasks, groups), max_size=3).map(tuple),
    modules=st.dictionaries(texts, files, max_size=2),
    grace_s=st.floats(0, 1e6),
    pairun=texts,
)


def through_json(plan: Plan) -> tuple[str, dict[str, Any]]:
    """The two texts that a plan becomes."""
    store = SecretStore()
    text = json.dumps(dump_plan(plan, store))
    secrets: dict[str, Any] = json.loads(json.dumps(store.dump()))
    return text, secrets


@settings(max_examples=cases(300))
@given(plans)
def test_what_goes_out_comes_back(plan: Plan) -> None:
    """A plan survives JSON: late values, secrets, mappings with our own keys, any text."""
    text, secrets = through_json(plan)
    assert load_plan(text, secrets, "plan.json") == plan


def test_no_secret_in_the_plan() -> None:
    """The plan holds references; equal secrets have one."""
    secret = Secret("s3cr3t-s3cr3t")
    late = Late(template="x", because="x", vars={"a": {"b": [secret]}})
    task = Task(
        id="a", name="A", module="m", args={"x": [secret, {"y": secret}], "z": late},
        environment={"T": secret}, when=late,
    )  # fmt: skip
    plan = Plan(phase="runtime", steps=(task,), modules={})
    text, secrets = through_json(plan)
    assert "s3cr3t" not in text
    assert secrets["values"] == {"s1": "s3cr3t-s3cr3t"}
    assert load_plan(text, secrets, "p") == plan


def test_defaults_are_left_out() -> None:
    """A plain task is a short object, so that a person can read the plan."""
    task = Task(id="a", name="A", module="m", args={})
    (step,) = dump_plan(Plan(phase="init", steps=(task,), modules={}), SecretStore())["steps"]
    assert step == {"id": "a", "name": "A", "module": "m", "args": {}}


# --- what is no plan --------------------------------------------------------------------------------

TASK = Task(id="a", name="A", module="m", args={"x": Late(template="t", because="b")})
GOOD, SECRETS = through_json(Plan(phase="init", steps=(TASK,), modules={}))


def refused(text: str | bytes, secrets: Any = SECRETS) -> str:
    """The message with which a text is refused."""
    with pytest.raises(PairunError) as caught:
        load_plan(text, secrets, "plan.json")
    (problem,) = caught.value.problems
    assert problem.id == "PR702"
    assert "plan.json" in problem.message
    return problem.message


def test_truncated() -> None:
    """A plan that was cut anywhere is refused."""
    for length in range(len(GOOD)):
        refused(GOOD[:length])


def test_another_version() -> None:
    """A plan of another schema says which one it has, and which one is read."""
    message = refused(json.dumps({**json.loads(GOOD), "schema": 2}))
    assert "has schema 2, this pairun reads 1" in message


@pytest.mark.parametrize(
    "text",
    [
        b"\xff\xfe", b"\x00", "null", "7", "[]", "{}", '"x"', '{"schema": 1}', "[" * 100_000,
        '{"schema": 1, "steps": 7}', '{"schema": 1, "steps": [7]}', '{"schema": 1, "steps": [{}]}',
        '{"a":' * 50_000,
    ],
)  # fmt: skip
def test_garbage(text: str | bytes) -> None:
    """Whatever the file holds, the answer is the same error."""
    refused(text)


def test_a_secret_that_is_not_there() -> None:
    """A reference without a value, and a secrets file that is none, are refused."""
    document = json.loads(GOOD)
    document["steps"][0]["args"] = {"x": {"$secret": "s9"}}
    refused(json.dumps(document))
    refused(json.dumps(document), [])


@settings(max_examples=cases(300))
@given(st.data())
def test_one_value_replaced(draw: st.DataObject) -> None:
    """With any one value of the document replaced, it is a plan or refused, and never a crash."""
    document = json.loads(GOOD)
    spots: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            spots.append((value, key))
            if isinstance(inner, dict | list):
                walk(inner)

    walk(document)
    holder, key = draw.draw(st.sampled_from(spots))
    holder[key] = draw.draw(
        st.one_of(st.none(), st.integers(), texts, st.just([]), st.just({}), st.just([[1]]))
    )
    refusals: tuple[Problem, ...] = ()
    try:
        load_plan(json.dumps(document), SECRETS, "plan.json")
    except PairunError as e:
        refusals = e.problems
    assert all(p.id == "PR702" for p in refusals)

"""The plan as JSON: what goes out comes back, and what is no plan is refused."""

from __future__ import annotations

import json
import math
import types
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairun.base.fields import decode
from pairun.base.forwarding import Forwarding, SignalStep
from pairun.contract.loading import ModuleFile
from pairun.errors import PairunError
from pairun.module import FailureKind, Secret
from pairun.plan import EVENTS, Group, Late, Plan, Task
from pairun.volume import reader
from pairun.volume.planfile import SecretStore, dump_plan, load_plan
from pairun.volume.reader import Command, Secrets, body
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


def through_json(plan: Plan, command: Command | None = None) -> tuple[str, Secrets]:
    """A plan's text, and its secrets."""
    store = SecretStore()
    text = json.dumps(dump_plan(plan, store, command))
    return text, decode(Secrets, body(json.loads(json.dumps(store.dump())), "secrets.json"))


def load(document: Any, secrets: Secrets) -> Plan:
    """The plan in a document."""
    return load_plan(body(document, "plan.json"), secrets, "plan.json")


@settings(max_examples=cases(100))
@given(plans)
def test_what_goes_out_comes_back(plan: Plan) -> None:
    """A plan survives JSON: late values, secrets, mappings with our own keys, any text."""
    text, secrets = through_json(plan)
    assert load(json.loads(text), secrets) == plan


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
    assert secrets.values == {"s1": "s3cr3t-s3cr3t"}
    assert load(json.loads(text), secrets) == plan


def test_defaults_are_left_out() -> None:
    """A plain task is a short object, so that a person can read the plan."""
    task = Task(id="a", name="A", module="m", args={})
    (step,) = dump_plan(Plan(phase="init", steps=(task,), modules={}), SecretStore())["steps"]
    assert step == {"id": "a", "name": "A", "module": "m", "args": {}}


# --- what is no plan --------------------------------------------------------------------------------

HANDLER = Task(id="a.on_exit", name="H", module="m", args={}, events=("failure",))
TASK = Task(
    id="a", name="A", module="m", when=Late(template="t", because="b"), retries=2, delay_s=0.5,
    args={"x": [Late(template="t", because="b", vars={"v": Secret("s3cr3t")})], "$": {"$late": 1}},
    environment={"T": Secret("s3cr3t")}, retry_on=("timeout",), timeout_s=2.0, deadline_s=9.0,
    failure_policy="ignore", run_on="first_of_job", exit_codes={"permanent": 7}, where="p:1",
    on_exit=(HANDLER,),
)  # fmt: skip
FILE = ModuleFile(path="modules/m.py", sha256="0" * 64, built_in=True)
GOOD, SECRETS = through_json(
    Plan(
        phase="init",
        steps=(TASK, Group(name="g", tasks=(HANDLER,))),
        modules={"m": FILE},
        grace_s=20.0,
        pairun="1",
    ),
    Command(
        grace_s=20.0, has_tasks=True, handlers=("undo",), argv=("train",), shells=("sh",),
        environment={"A": "x", "B": Secret("s3cr3t")}, on_stop="own",
        forwarding=Forwarding(
            to_group=False, rewrite={15: (SignalStep(0.0, 2), SignalStep(1.5, 15)), 1: ()}
        ),
    ),
)  # fmt: skip


def refused(document: object, secrets: Secrets = SECRETS) -> str:
    """The message with which a document is refused."""
    with pytest.raises(PairunError) as caught:
        load(document, secrets)
    (problem,) = caught.value.problems
    assert problem.id == "PR702"
    assert "plan.json" in problem.message
    return problem.message


@pytest.mark.parametrize("schema", [1, 3, True, None, "2"])
def test_another_version(schema: object) -> None:
    """A plan of another schema says which one it has, and which one is read."""
    message = refused({**json.loads(GOOD), "schema": schema})
    assert f"has schema {schema}, this pairun reads 2" in message


@pytest.mark.parametrize(
    "document",
    [None, 7, [], {}, "x", {"schema": 2}, {"schema": 2, "steps": 7}, {"schema": 2, "steps": [7]}],
)
def test_garbage(document: object) -> None:
    """Whatever the file holds, the answer is the same error."""
    refused(document)


def test_nested_too_deep() -> None:
    """A value that no decoder can follow is refused."""
    document = json.loads(GOOD)
    value: Any = {}
    for _ in range(5000):
        value = {"x": value}
    document["steps"][0]["args"] = value
    assert "nested too deep" in refused(document)


def test_a_secret_that_is_not_there() -> None:
    document = json.loads(GOOD)
    message = refused(document, Secrets())
    assert "steps[0].args.x[0].$late.vars.v.$secret must be in the secrets file" in message


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("phase", "build", "phase must be one of init, runtime"),
        ("grace_s", "30", "grace_s must be a number, it is text"),
        ("grace_s", float("inf"), "grace_s must be a finite number"),
        ("grace_s", float("nan"), "grace_s must be a finite number"),
        ("modules", [], "modules must be a mapping"),
        ("modules.m", {}, "modules.m must have the field 'path'"),
        ("modules.m.built_in", 1, "modules.m.built_in must be true or false"),
        ("steps.0.id", 3, "steps[0].id must be text"),
        ("steps.0.retries", "3", "steps[0].retries must be a whole number, it is text"),
        ("steps.0.retries", -1, "steps[0].retries must be a number from 0 to"),
        ("steps.0.retries", True, "steps[0].retries must be a whole number"),
        ("steps.0.delay_s", -1, "steps[0].delay_s must not be negative"),
        ("steps.0.deadline_s", 10**400, "steps[0].deadline_s must be a finite number"),
        ("steps.0.retry_on", "timeout", "steps[0].retry_on must be a list"),
        ("steps.0.retry_on", [["timeout"]], "steps[0].retry_on[0] must be one of transient"),
        ("steps.0.exit_codes", {"oops": 3}, "steps[0].exit_codes must be one of transient"),
        (
            "steps.0.exit_codes.permanent",
            256,
            "steps[0].exit_codes.permanent must be a number from 0 to 255",
        ),
        (
            "steps.0.failure_policy",
            "perhaps",
            "steps[0].failure_policy must be one of fail, ignore",
        ),
        ("steps.0.environment", [], "steps[0].environment must be a mapping"),
        ("steps.0.when.$late", 3, "steps[0].when.$late must be a mapping"),
        ("steps.0.when.$late.vars", None, "steps[0].when.$late.vars must be a mapping"),
        ("steps.0.on_exit.0.name", None, "steps[0].on_exit[0].name must be text"),
        ("steps.0.loop", 3, "steps[0] must not have the field 'loop'"),
        ("steps.0.id", {"$secret": "s1"}, "steps[0].id must be text, it is a Secret"),
        (
            "steps.0.args.$literal.y",
            {"$secret": "s1", "x": 1},
            "steps[0].args.y must not have the field",
        ),
        ("steps.0.when.$late.template", 3, "steps[0].when.$late.template must be text"),
        ("steps.1.tasks", {}, "steps[1].tasks must be a list"),
        ("steps.1.tasks.0", None, "steps[1].tasks[0] must be a mapping"),
    ],
)
def test_the_place_is_named(path: str, value: Any, words: str) -> None:
    """A field of a wrong type is refused with its place in the plan."""
    document = json.loads(GOOD)
    holder: Any = document
    *steps, last = path.split(".")
    for key in steps:
        holder = holder[int(key) if isinstance(holder, list) else key]
    holder[int(last) if isinstance(holder, list) else last] = value
    assert words in refused(document)


def spots(document: Any) -> list[tuple[Any, Any]]:
    """Every place in a document: what holds it, and its key or index."""
    found: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in list(items):
            found.append((value, key))
            if isinstance(inner, dict | list):
                walk(inner)

    walk(document)
    return found


VALUES: tuple[Any, ...] = (
    None, True, 0, 1, -1, 1.5, 10**400, float("inf"), float("nan"), "", "x", [], {}, [[1]], ["x"],
    [None], {"x": 1}, {"$late": 1}, {"$late": {"template": 1, "because": "x"}}, {"$secret": "s1"},
    {"$secret": []}, {"$literal": 1}, [{}],
)  # fmt: skip


@pytest.mark.slow
def test_every_value_replaced_by_every_other() -> None:
    """With any one value replaced or removed, it is a plan or refused with PR702, never a crash."""
    count = len(spots(json.loads(GOOD)))
    outcomes = set()
    for spot in range(count):
        for value in (*VALUES, "remove"):
            document = json.loads(GOOD)
            holder, key = spots(document)[spot]
            if value == "remove":
                del holder[key]
            else:
                holder[key] = value
            outcomes |= {read_both(document)}
    assert outcomes == {"refused", "decoded"}


@settings(max_examples=cases(150))
@given(st.data())
def test_any_two_values_replaced(draw: st.DataObject) -> None:
    """The same for two values at once, with anything that JSON can hold."""
    document = json.loads(GOOD)
    for _ in range(2):
        holder, key = draw.draw(st.sampled_from(spots(document)))
        holder[key] = draw.draw(st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | texts,
            lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=2),
            max_leaves=4,
        ))  # fmt: skip
        if not document.get("steps") or not isinstance(document["steps"], list):
            break
    read_both(document)


def read_both(document: Any) -> str:
    """Read a document as the executor and as PID 1 do."""
    outcome = "decoded"
    for kind, read in ((Plan, load), (Command, load_command)):
        try:
            record = read(document, SECRETS)
        except PairunError as e:
            assert [p.id for p in e.problems] == ["PR702"]
            outcome = "refused"
        else:
            assert conforms(kind, record), record
    return outcome


def load_command(document: Any, secrets: Secrets) -> Command:
    """The command in a document."""
    fields = body(document, "plan.json").get("command")
    return reader.load(Command, fields, "command", "plan.json", secrets)


def conforms(kind: Any, value: Any) -> bool:
    """Whether a value has a declared type; the hints are read here once more, in another way."""
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any:
        return True
    if origin is Annotated:
        return conforms(args[0], value) and (not isinstance(value, int | float) or value >= 0)
    if origin is Literal:
        return type(value) is str and value in args
    if origin in (Union, types.UnionType):
        return any(conforms(each, value) for each in args)
    if origin is tuple:
        return type(value) is tuple and all(conforms(args[0], each) for each in value)
    if origin is frozenset:
        return type(value) is frozenset and all(conforms(args[0], each) for each in value)
    if origin is Mapping:
        return type(value) is dict and all(
            conforms(args[0], k) and conforms(args[1], v) for k, v in value.items()
        )
    if type(value) is not kind:
        return False
    if kind is float:
        return math.isfinite(value)
    if kind in (str, int, bool, Secret, type(None)):
        return True
    hints = get_type_hints(kind, include_extras=True)
    return all(conforms(hint, getattr(value, name)) for name, hint in hints.items())

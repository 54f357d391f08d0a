"""Job files: what is accepted, and what is said about the rest."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pairun.errors import Problems, Source, render
from pairun.job.jobfile import load_job, read_job
from pairun.job.jsyaml import JS
from pairun.job.model import Job
from pairun.job.protocol import JOB_SCHEMA
from pairun.playbook.document.reading import read_text
from tests.effort import cases

JOB = """\
protocolVersion: 2
name: mnist
type: job
prerequisites:
  - {name: image, type: dockerimage, uri: "ubuntu:22.04"}
  - {name: digits, type: data, uri: ["https://example.org/digits.tgz"]}
taskRoles:
  worker:
    instances: 2
    dockerImage: image
    data: digits
    resourcePerInstance: {cpu: 1, memoryMB: 1024, gpu: 0}
    commands: [train]
"""

Change = tuple[str, str]


def problems_of(text: str) -> Problems:
    """Everything that is wrong with a job."""
    return read_job(read_text(Source("job.yaml", "job", text), JS))[1]


def job_of(text: str) -> Job:
    """A job that must be valid."""
    job, problems = read_job(read_text(Source("job.yaml", "job", text), JS))
    assert job is not None, "\n".join(map(render, problems))
    return job


def changed(*changes: Change) -> str:
    """The job with pieces of its text replaced."""
    text = JOB
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return text


def document(**entries: Any) -> str:
    """The job with further or other top-level entries."""
    return yaml.safe_dump({**yaml.safe_load(JOB), **entries}, sort_keys=False)


def with_plugins(*items: Any) -> str:
    """The job with a list of runtime plugins."""
    return document(extras={"com.microsoft.pai.runtimeplugin": list(items)})


def with_prerequisite(**entry: Any) -> str:
    """The job with one more prerequisite."""
    base = yaml.safe_load(JOB)["prerequisites"]
    return document(prerequisites=[*base, {"name": "p", "type": "script", **entry}])


def test_a_job_becomes_records() -> None:
    """Defaults are those of OpenPAI's REST server."""
    job = job_of(JOB)
    worker = job.roles[0]
    assert (job.name, job.user, job.virtual_cluster, job.gang) == ("mnist", "user", "default", True)
    assert (worker.instances, worker.min_failed, worker.min_succeeded) == (2, 1, 2)
    assert worker.image.name == "image"
    assert worker.data is not None
    assert worker.script is None
    assert list(worker.resources.ports.items()) == [("ssh", 1), ("http", 1)]
    assert job.plugin_overrides is None


ACCEPTED = {
    "version as text": changed(("protocolVersion: 2", "protocolVersion: '2'")),
    "a whole number with a fraction": changed(("cpu: 1,", "cpu: 1.0,")),
    "null completion": changed(("    data: digits", "    completion: {minFailedInstances: null}")),
    "any extra container option": changed(
        ("    data: digits", "    extraContainerOptions: {infiniband: true, foo: 1}")
    ),
    "further keys of a deployment": document(
        deployments=[{"name": "d", "taskRoles": {"worker": {}}, "note": 1}]
    ),
    "further defaults": document(defaults={"virtualCluster": "gpu", "priority": "test"}),
    "unknown extras": document(extras={"submitFrom": "test", "storages": []}),
    "a job type": document(jobType="training"),
    "a script without uri": with_prerequisite(),
    "callbacks without plugin": with_prerequisite(
        callbacks=[{"event": "taskStarts", "commands": ["true"]}]
    ),
    "further keys of a prerequisite": with_prerequisite(plugin="other.tool", key1="value1"),
    "one name under two types": with_prerequisite(name="image"),
    "pairun's own extras": document(extras={"pairun": {"vars": {"depth": 1}}}),
    "a plugin without parameters": with_plugins({"plugin": "tensorboard"}),
    "a hook that is the default": with_plugins({"plugin": "ssh", "hook": "preTaskStarts"}),
    "a failure policy in capitals": with_plugins({"plugin": "ssh", "failurePolicy": "IGNORE"}),
}


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_what_openpai_accepts_is_accepted(text: str) -> None:
    """The schema is as open as the REST server's, with what pairun adds."""
    job_of(text)


# What is written, the id, where (line and column), and a part of the message or hint.
Refusal = tuple[str, str, tuple[int, int], str]
REFUSED: list[Refusal] = [
    ("[1]", "PR501", (1, 1), "a mapping"),
    (changed(("protocolVersion: 2", "protocolVersion: 1")), "PR501", (1, 18), "must be 2"),
    (changed(("name: mnist", "name: my job")), "PR503", (2, 7), "'my job'"),
    (changed(("name: mnist", "name: 7")), "PR503", (2, 7), "quote it"),
    (changed(("name: mnist", "name: " + "a" * 256)), "PR503", (2, 7), "255"),
    (changed(("type: job", "type: jobs")), "PR503", (3, 7), "did you mean 'job'"),
    (changed(("type: job\n", "")), "PR504", (1, 1), "'type' is missing"),
    (JOB + "extra: {}\n", "PR502", (14, 1), "did you mean 'extras'"),
    (changed(("instances: 2", "instances: two")), "PR503", (9, 16), "a whole number"),
    (changed(("instances: 2", "instances: 0")), "PR503", (9, 16), "at least 1"),
    (changed(("instances: 2", "instnces: 2")), "PR502", (9, 5), "did you mean 'instances'"),
    (changed(("commands: [train]", "commands: []")), "PR503", (13, 15), "empty"),
    (changed(("commands: [train]", "commands: [1]")), "PR503", (13, 16), "quote it"),
    (changed(("  worker:", "  2worker:")), "PR503", (8, 3), "'2worker'"),
    (changed(("gpu: 0", "gpu: 0, ports: {a: -1}")), "PR503", (12, 70), "at least 0"),
    (changed(("gpu: 0", "gpu: 0, ports: {a: 99999}")), "PR503", (12, 70), "at most 1000"),
    (changed(("gpu: 0", "gpu: 0, ports: {a: 600, b: 399}")), "PR503", (12, 59), "1001 ports with ssh and http"),
    (changed((", gpu: 0", "")), "PR504", (12, 5), "'gpu' is missing"),
    (changed(("dockerImage: image", "dockerImage: imag")), "PR505", (10, 18), "'image'"),
    (changed(("data: digits", "data: image")), "PR505", (11, 11), "of type data"),
    (changed(("data: digits", "prerequisites: [x]")), "PR505", (11, 21), "'x'"),
    (changed(("digits, type: data, uri: [", "image, type: dockerimage, uri: [")), "PR503", (6, 43), "text"),
    (changed(("digits, type: data", "image, type: dockerimage")), "PR508", (6, 5), "'image'"),
    (changed(("[train]", "['<% $parameters.a']")), "PR510", (13, 16), "does not end"),
    (changed(("[train]", "[a, '<%# s %>']")), "PR510", (13, 19), "section"),
    (document(defaults={"deployment": "fast"}), "PR515", (24, 15), "'fast'"),
    (document(secrets="hunter2"), "PR503", (23, 10), "a mapping, not text"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "id_", "at", "part"), REFUSED)
def test_what_is_wrong_is_shown_where_it_is(
    text: str, id_: str, at: tuple[int, int], part: str
) -> None:
    """Each error has its id, its place, and says what to do or what was expected."""
    found = [p for p in problems_of(text) if p.id == id_]
    assert found, list(map(render, problems_of(text)))
    assert any(
        p.place is not None and tuple(p.place[1:]) == at and part in f"{p.message} {p.hint or ''}"
        for p in found
    ), list(map(render, found))
    assert "hunter2" not in "".join(map(render, found))


def test_everything_wrong_is_reported_at_once() -> None:
    """One reading finds the schema's errors and the wrong names together."""
    text = changed(("name: mnist", "name: my job"), ("dockerImage: image", "dockerImage: x"))
    found = [p.id for p in problems_of(text + "extra: 1\n").errors]
    assert found == ["PR503", "PR505", "PR502"]


def test_two_roles_with_one_sanitised_name_are_refused() -> None:
    """OpenPAI would merge them silently; both places are shown."""
    roles = yaml.safe_load(JOB)["taskRoles"]
    text = document(taskRoles={"a_b": roles["worker"], "AB": roles["worker"]})
    (problem,) = problems_of(text).errors
    assert problem.id == "PR507"
    assert "'ab'" in problem.message
    ((_, first),) = problem.also
    assert first.source.line(first.line).startswith("  a_b:")
    assert [p.id for p in problems_of(document(taskRoles={"_": roles["worker"]})).errors] == [
        "PR507"
    ]


def test_a_circle_of_requirements_is_shown() -> None:
    """The chain is in the message; what is required must exist."""
    entries = [
        *yaml.safe_load(JOB)["prerequisites"],
        {"name": "a", "type": "script", "require": ["b"]},
        {"name": "b", "type": "script", "require": ["c", "digits"]},
        {"name": "c", "type": "script", "require": ["a", "digit"]},
    ]
    found = {p.id: p for p in problems_of(document(prerequisites=entries)).errors}
    assert "a -> b -> c -> a" in found["PR506"].message
    assert found["PR505"].hint == "did you mean 'digits'?"


BAD_PLUGINS: list[tuple[Any, str, str]] = [
    ("ssh", "PR503", "must be a mapping"),
    ({"parameters": {}}, "PR504", "'plugin'"),
    ({"plugin": 1}, "PR503", "name"),
    ({"plugin": "ssh", "failurePolicy": "ignor"}, "PR503", "did you mean 'ignore'"),
    ({"plugin": "ssh", "taskroles": "worker"}, "PR503", "list"),
    ({"plugin": "ssh", "hook": "later"}, "PR503", "hook"),
    ({"plugin": "cmd", "parameters": {"callbacks": 1}}, "PR503", "list"),
    ({"plugin": "cmd", "parameters": {"callbacks": [{}]}}, "PR504", "'event'"),
    ({"plugin": "cmd", "parameters": {"callbacks": [1]}}, "PR503", "mapping"),
    (
        {"plugin": "cmd", "parameters": {"callbacks": [], "preCommands": []}},
        "PR513",
        "preCommands",
    ),
    (
        {"plugin": "cmd", "parameters": {"callbacks": [{"event": "taskStarts", "commands": [1]}]}},
        "PR503",
        "quote it",
    ),
    (
        {"plugin": "cmd", "parameters": {"callbacks": [{"event": 1, "command": []}]}},
        "PR502",
        "did you mean 'commands'",
    ),
]


@pytest.mark.parametrize(("item", "id_", "part"), BAD_PLUGINS)
def test_a_malformed_plugin_item_is_refused(item: Any, id_: str, part: str) -> None:
    """What the original runtime died of in the Pod is an error of the job file."""
    found = [p for p in problems_of(with_plugins(item)).errors if p.id == id_]
    assert any(part in f"{p.message} {p.hint or ''}" and p.place for p in found)


def test_what_openpai_ignores_is_only_warned_about() -> None:
    """A filter for nobody, an unknown event, a hook and unknown keys do not stop a job."""
    callbacks = {"callbacks": [{"event": "taskStart", "commands": ["true"]}]}
    text = with_plugins(
        {"plugin": "ssh", "taskroles": ["wrker"], "hook": "postTaskSucceeds"},
        {"plugin": "cmd", "parameters": callbacks, "parametres": 1},
    )
    job_of(text)
    hints = {p.id: p.hint for p in problems_of(text)}
    assert set(hints) == {"PR502", "PR509", "PR907", "PR908"}
    assert hints["PR907"] == "did you mean 'taskStarts'?"
    assert hints["PR509"] == "did you mean 'worker'?"


# What stands in extras, and each warning: id, column in its line, a part of message and hint.
Slip = tuple[str, list[tuple[str, int, str]]]
SLIPS: list[Slip] = [
    ("storages: [scratch]", [("PR503", 14, "write {name: scratch}")]),
    ("storages: [7, null]", [("PR503", 14, "mapping"), ("PR503", 17, "mapping")]),
    ("storages: [{mountPath: /x}]", [("PR504", 14, "'name' is missing")]),
    ("storages: [{name: ''}]", [("PR504", 14, "'name' is missing")]),
    ("storages: {name: a}", [("PR503", 13, "must be a list")]),
    ("storages: a", [("PR503", 13, "must be a list")]),
    ("storages: [{name: a, moutnPath: /x}]", [("PR502", 24, "did you mean 'mountPath'?")]),
    ("storages: [{name: a, x: 1}]", [("PR502", 24, "known here: mountPath, name")]),
    ("storages: [{name: [a]}]", [("PR503", 21, "name")]),
    ("storages: [{name: a}, {name: b, mountPath: /x}]", []),
    ("storages: null", []),
    ("storage: [{name: a}]", [("PR502", 3, "did you mean 'storages'?")]),
    ("gangAlocation: false", [("PR502", 3, "did you mean 'gangAllocation'?")]),
    ("gang_allocation: false", [("PR502", 3, "did you mean 'gangAllocation'?")]),
    ("jobStatusChangeNotificaton: {}", [("PR502", 3, "'jobStatusChangeNotification'")]),
    ("pairn: {}", [("PR502", 3, "did you mean 'pairun'?")]),
    ("com.microsoft.pai.runtimePlugin: []", [("PR502", 3, ".runtimeplugin'?")]),
    ("{submitFrom: x, forceNodes: [], allowAzCopy: true, enableLocalStorage: {}}", []),
    ("{scheduler: x, nodes: [], tensorBoard: {}, notify: 1, storageClass: x, team: a}", []),
]


@pytest.mark.parametrize(("extras", "expected"), SLIPS)
def test_a_slip_in_extras_is_warned_about(
    extras: str, expected: list[tuple[str, int, str]]
) -> None:
    """What is skipped or nearly a known key is said at its place; other extras are anyone's."""
    text = f"{JOB}extras:\n  {extras}\n"
    job_of(text)
    found = list(problems_of(text))
    assert [(p.id, p.place and p.place[1:]) for p in found] == [
        (id_, (15, column)) for id_, column, _ in expected
    ]
    for problem, (_, _, part) in zip(found, expected, strict=True):
        assert part in f"{problem.message} {problem.hint}"


def test_a_password_in_plain_sight_is_not_shown() -> None:
    """No excerpt of the source shows a literal password."""
    text = changed(("type: dockerimage,", "type: dockerimage, auth: {password: 12345678},"))
    shown = "".join(map(render, problems_of(text)))
    assert "PR503" in shown
    assert "12345678" not in shown


SECRET_LAYOUTS = [
    json.dumps({**yaml.safe_load(JOB), "secrets": {"a": "hunter2"}, "nmae": 1}),
    json.dumps({"secrets": {"a": "hunter2"}, **yaml.safe_load(JOB), "nmae": 1}, indent=1),
    JOB + "secrets:\n  a: >-\n    x\n\n    hunter2\nnmae: 1\n",
    JOB + "'secrets': {a: b,\n  c: hunter2}\nnmae: 1\n",
]


@pytest.mark.parametrize("text", SECRET_LAYOUTS)
def test_no_excerpt_shows_a_secret(text: str) -> None:
    """However a job is laid out, lines that hold secrets are not printed."""
    document_ = read_text(Source("job.yaml", "job", text), JS)
    (problem,) = read_job(document_)[1]
    assert problem.id == "PR502"
    source = document_.place.source
    lines = range(1, text.count("\n") + 2)
    assert "hunter2" not in render(problem)
    assert "hunter2" not in "".join(source.line(n) for n in lines)


def test_a_file_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    """Reading errors come back like all others."""
    path = tmp_path / "job.yaml"
    path.write_text("a: [")
    job, problems = load_job(str(path))
    assert job is None
    assert [p.id for p in problems] == ["PR101"]


def test_the_schema_is_a_schema() -> None:
    """It is valid by its own standard, and plain JSON."""
    import jsonschema

    jsonschema.Draft202012Validator.check_schema(json.loads(json.dumps(JOB_SCHEMA)))


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
FULL: dict[str, Any] = {
    **yaml.safe_load(
        document(secrets={"a": "b"}, parameters={"a": 1}, defaults={"deployment": "d"})
    ),
    "deployments": [{"name": "d", "taskRoles": {"worker": {"preCommands": ["x"]}}}],
    "extras": {
        "gangAllocation": False,
        "com.microsoft.pai.runtimeplugin": [
            {
                "plugin": "cmd",
                "taskroles": ["worker"],
                "failurePolicy": "fail",
                "parameters": {"callbacks": [{"event": "taskStarts", "commands": ["a"]}]},
            }
        ],
    },
}


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path into a tree."""
    if isinstance(value, dict):
        items = list(value.items())
    else:
        items = list(enumerate(value)) if isinstance(value, list) else []
    return [path, *(deeper for key, child in items for deeper in paths_of(child, (*path, key)))]


@settings(max_examples=cases(300))
@given(st.sampled_from(paths_of(FULL)[1:]), anything)
def test_no_document_breaks_the_reader(path: tuple[Any, ...], value: Any) -> None:
    """Whatever stands wherever in a job, the answer is a job or errors with places."""
    mutated = copy.deepcopy(FULL)
    parent = mutated
    for step in path[:-1]:
        parent = parent[step]
    parent[path[-1]] = value
    text = json.dumps(mutated, allow_nan=False) if _is_json(mutated) else json.dumps(FULL)
    job, problems = read_job(read_text(Source("job.json", "job", text), JS))
    assert (job is None) == bool(problems.errors)
    assert all(p.place is not None for p in problems)


def _is_json(value: Any) -> bool:
    try:
        text = json.dumps(value, allow_nan=False)
        read_text(Source("job.json", "job", text), JS)
    except Exception:  # noqa: BLE001 - whatever it is, this is no input for the test
        return False
    return True

"""Jobs of OpenPAI on YARN: what they become, and what is said of what they cannot."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pairun.errors import Problem, Source, render
from pairun.job.jobfile import read_input, read_job
from pairun.job.jsyaml import JS
from pairun.job.model import Job, fc_name
from pairun.job.protocol import JOB_SCHEMA
from pairun.job.templates import user_command
from pairun.job.writing import as_yaml
from pairun.openpai.framework import job_from_framework, job_text, make_framework
from pairun.playbook.document.reading import read_text
from pairun.playbook.document.scalars import CORE
from tests.effort import cases

ROLE = {"name": "worker", "taskNumber": 2, "command": "train"}
SMALL: dict[str, Any] = {"jobName": "old", "image": "ubuntu:22.04", "taskRoles": [ROLE]}


def read(document: Any) -> tuple[Job | None, list[Problem]]:
    """What becomes of a document, written as JSON."""
    text = document if isinstance(document, str) else json.dumps(document, indent=2)
    job, problems = read_input(text.encode(), "old.json")
    return job, list(problems)


def job_of(**more: Any) -> Job:
    """A job that must be valid: the small one with further keys."""
    job, problems = read({**SMALL, **more})
    assert job is not None, list(map(render, problems))
    return job


def with_role(**more: Any) -> dict[str, Any]:
    """The small job, its role with further keys."""
    return {**SMALL, "taskRoles": [{**ROLE, **more}]}


def facts(job: Job) -> dict[str, Any]:
    """Everything that a job is, without the places."""
    return {
        "document": job.node.plain(),
        "job": (job.name, job.virtual_cluster, job.retry_count, job.gang, job.framework_id),
        "parameters": job.parameters.plain() if job.parameters else None,
        "extras": job.extras.plain() if job.extras else None,
        "roles": [
            (r.name, r.fc_name, r.instances, r.min_failed, r.min_succeeded, r.retry_count,
             r.resources, r.image.name, r.data and r.data.name, user_command(job, r))
            for r in job.roles
        ],
    }  # fmt: skip


def test_a_small_job_has_the_defaults_of_its_time() -> None:
    """One CPU, 100 MB, 64 MB of shared memory; the first failure ends the job."""
    job = job_of()
    (role,) = job.roles
    assert (job.name, job.virtual_cluster, job.retry_count) == ("old", "default", 0)
    assert (role.instances, role.min_failed, role.min_succeeded) == (2, 1, -1)
    asked = role.resources
    assert (asked.cpu, asked.memory_mb, asked.gpu, asked.shm_mb) == (1, 100, 0, 64)
    assert user_command(job, role) == "train"


def test_everything_a_job_could_say_is_carried() -> None:
    """Folders and variables reach the command, numbers the platform."""
    job = job_of(
        dataDir="hdfs://h:9000/data", outputDir="hdfs://h:9000/out", codeDir="hdfs://h:9000/code",
        virtualCluster="fast", retryCount=3, jobEnvs={"batch": 32, "debug": True, "who": "it's"},
        extras={"note": {"a": [1, None]}},
        taskRoles=[{**ROLE, "cpuNumber": 4, "memoryMB": 2048, "shmMB": 128, "gpuNumber": 1,
                    "portList": [{"label": "web", "portNumber": 2}, {"label": "one"}]}],
    )  # fmt: skip
    (role,) = job.roles
    assert user_command(job, role).splitlines() == [
        'export PAI_DATA_DIR="hdfs://h:9000/data"',
        'export PAI_OUTPUT_DIR="hdfs://h:9000/out"',
        'export PAI_CODE_DIR="hdfs://h:9000/code"',
        "export batch='32'",
        "export debug='true'",
        "export who='it'\"'\"'s'",
        "train",
    ]
    asked = role.resources
    assert (asked.cpu, asked.memory_mb, asked.gpu, asked.shm_mb) == (4, 2048, 1, 128)
    assert dict(asked.ports) == {"web": 2, "one": 1, "ssh": 1, "http": 1}
    assert (job.virtual_cluster, job.retry_count) == ("fast", 3)
    assert job.extras is not None
    assert job.extras.plain() == {"note": {"a": [1, None]}}
    assert role.data is not None
    assert role.data.node.plain()["uri"] == ["hdfs://h:9000/data"]


ENDS: list[tuple[dict[str, Any], dict[str, Any], tuple[int, int]]] = [
    ({}, {}, (1, -1)),
    ({"minFailedTaskCount": None}, {}, (-1, -1)),
    ({"minFailedTaskCount": 2, "minSucceededTaskCount": 1}, {}, (2, 1)),
    ({"minSucceededTaskCount": None}, {}, (1, -1)),
    ({}, {"killAllOnCompletedTaskNumber": 0}, (1, -1)),
    ({"minFailedTaskCount": None}, {"killAllOnCompletedTaskNumber": 2}, (1, 1)),
    ({"minSucceededTaskCount": 2}, {"killAllOnCompletedTaskNumber": 1}, (1, 2)),
]


@pytest.mark.parametrize(("role", "more", "expected"), ENDS)
def test_the_job_ends_as_it_did(
    role: dict[str, Any], more: dict[str, Any], expected: tuple[int, int]
) -> None:
    """Null meant never for failures, and the end of all for successes."""
    job, _ = read({**with_role(**role), **more})
    assert job is not None
    assert (job.roles[0].min_failed, job.roles[0].min_succeeded) == expected


LOST: list[tuple[dict[str, Any], str, str]] = [
    ({"authFile": "hdfs://h/auth"}, "PR732", '"hdfs://h/auth"'),
    ({"gpuType": "K80"}, "PR732", '"K80"'),
    ({"dataDir": "/data"}, "PR733", '"/data"'),
    ({"outputDir": "/out"}, "PR733", '"/out"'),
    ({"codeDir": "/code"}, "PR733", '"/code"'),
    ({"killAllOnCompletedTaskNumber": 1}, "PR732", "1"),
    ({"jobEnvs": {"isDebug": True}}, "PR732", '"isDebug"'),
    ({"jobEnvs": {"no-name": 1}}, "PR732", '"no-name"'),
    (with_role(portList=[{"label": "a", "beginAt": 80}]), "PR732", "80"),
    (with_role(command="ls ${PAI_DEFAULT_FS_URI}"), "PR732", '"ls ${PAI_DEFAULT_FS_URI}"'),
]


@pytest.mark.parametrize(("more", "id_", "at"), LOST)
def test_nothing_is_dropped_without_a_word(more: dict[str, Any], id_: str, at: str) -> None:
    """What v2 has no place for is a warning, at what was written."""
    job, problems = read({**SMALL, **more})
    assert job is not None
    found = [p for p in problems if p.id == id_]
    assert [p.severity for p in found] == ["warning"], problems
    place = found[0].place
    assert place is not None
    assert place.source.text.split("\n")[place.line - 1][place.column - 1 :].startswith(at)
    assert found[0].hint


@pytest.mark.parametrize("key", ["authFile", "gpuType", "dataDir", "virtualCluster"])
def test_what_is_empty_is_as_if_it_were_not_there(key: str) -> None:
    """The REST server's own default for these was the empty text."""
    job, problems = read({**SMALL, key: ""})
    assert job is not None
    assert facts(job) == facts(job_of())
    assert [p.id for p in problems] == ["PR738"]


WRONG: list[tuple[dict[str, Any], list[str]]] = [
    ({"jobName": "a.b"}, ["PR731"]),
    ({"jobName": ""}, ["PR503"]),
    ({"jobName": 5}, ["PR503"]),
    ({"image": None}, ["PR503"]),
    ({"taskRoles": []}, ["PR503"]),
    ({"taskRoles": {"worker": {}}}, ["PR503"]),
    ({"taskRoles": [3]}, ["PR503"]),
    ({"retryCount": -2}, ["PR503"]),
    ({"killAllOnCompletedTaskNumber": True}, ["PR503"]),
    ({"jobEnv": {}}, ["PR502"]),
    ({"jobEnvs": {"a": None}}, ["PR503"]),
    ({"jobEnvs": {"a": {"b": 1}}}, ["PR503"]),
    ({"dataDir": 'a"; rm -r b; "'}, ["PR734"]),
    ({"codeDir": "a`b`"}, ["PR734"]),
    (with_role(name="a-b"), ["PR731"]),
    (with_role(name="2nd"), ["PR731"]),
    (with_role(name="___"), ["PR507"]),
    (with_role(taskNumber=0), ["PR503"]),
    (with_role(cpuNumber=-1), ["PR503"]),
    (with_role(gpuNumber="1"), ["PR503"]),
    (with_role(memoryMb=1), ["PR502"]),
    (with_role(command="  "), ["PR503"]),
    (with_role(command=["a"]), ["PR503"]),
    (with_role(minFailedTaskCount=0), ["PR503"]),
    (with_role(minSucceededTaskCount=3), ["PR503"]),
    (with_role(portList=[{"label": "a.b"}]), ["PR731"]),
    (with_role(portList=[{"label": "a"}, {"label": "a"}]), ["PR508"]),
    (with_role(portList=[{"beginAt": -1}]), ["PR503", "PR504"]),
    ({"taskRoles": [ROLE, ROLE]}, ["PR508"]),
    ({"taskRoles": [ROLE, {**ROLE, "name": "Worker"}]}, ["PR507"]),
    ({"protocolVersion": 2}, ["PR730"]),
    ({"jobName": "a.b", "retryCount": "x", "image": 1, "extra": {}}, ["PR502", "PR503", "PR503", "PR731"]),
]  # fmt: skip


@pytest.mark.parametrize(("more", "ids"), WRONG)
def test_all_that_is_wrong_is_said_at_once(more: dict[str, Any], ids: list[str]) -> None:
    """Each mistake with its id and its place in the file."""
    job, problems = read({**SMALL, **more})
    assert job is None
    errors = [p for p in problems if p.severity == "error"]
    assert sorted(p.id for p in errors) == ids
    assert all(p.place and p.place.source.file == "old.json" for p in errors)


def test_a_refused_name_comes_with_one_that_is_not() -> None:
    """The suggestion is itself accepted."""
    for document in ({**SMALL, "jobName": "my.job~1-a"}, with_role(name="9.ps"),
                     with_role(portList=[{"label": "0~a"}])):  # fmt: skip
        _, problems = read(document)
        (problem,) = [p for p in problems if p.id == "PR731"]
        assert problem.hint is not None
        old, new = problem.message.split("'")[1], problem.hint.split("'")[1]
        fixed, problems = read(json.dumps(document).replace(old, new))
        assert fixed is not None, list(map(render, problems))


@pytest.mark.parametrize("text", ["protocolVersion: 2\ntaskRoles: [{name: a}]\n",
                                  "protocolVersion: 2\njobName: a\ntaskRoles: {}\n"])  # fmt: skip
def test_a_mixture_of_both_formats_is_neither(text: str) -> None:
    """One error that names both sides, not a flood of unknown keys."""
    job, problems = read(text)
    assert job is None
    assert [p.id for p in problems] == ["PR730"]
    assert len(problems[0].also) == 1


def test_later_problems_stand_in_the_original_text() -> None:
    """A tag that OpenPAI cannot read is shown where the old file has it."""
    _, problems = read(with_role(command="echo <%# a %>"))
    (problem,) = [p for p in problems if p.id == "PR510"]
    assert problem.place is not None
    assert "echo <%# a %>" in problem.place.source.line(problem.place.line)


def test_the_framework_of_an_old_job_carries_the_new_text() -> None:
    """What is stored in the cluster is protocol v2, and reads back as the same job."""
    job = job_of(jobEnvs={"a": "b"})
    made = make_framework(job)
    assert job_text(made) == job.text
    assert job.text.startswith("protocolVersion: 2\n")
    back, problems = job_from_framework(made)
    assert back is not None
    assert not problems
    assert facts(back)["document"] == facts(job)["document"]


def test_json_escapes_beyond_the_basic_plane_are_read() -> None:
    """JSON writes an emoji as two escapes; every job file in JSON may have them."""
    job, _ = read(with_role(command="echo \U0001f600 \\ud83d\\ude00"))
    assert job is not None
    assert user_command(job, job.roles[0]) == "echo \U0001f600 \\ud83d\\ude00"
    assert "\\u" in json.dumps("\U0001f600")


# --- properties ---------------------------------------------------------------------------------

NAMES = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,8}", fullmatch=True)
TEXTS = st.text(max_size=30).filter(lambda t: "<%" not in t and "\x00" not in t)
LINES = st.lists(TEXTS, min_size=1, max_size=3).map("\n".join).filter(lambda t: bool(t.strip()))
COUNTS = st.integers(0, 10**6)
KEYS = TEXTS.filter(lambda t: t != "<<")
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
AMBIGUOUS = st.sampled_from(
    ["012", "1:30", "1_000", "1e3", "0b1", "0o7", "yes", "null", "~", "2020-01-02", "", " a ", "a: b",
     "#a", "- a", "a\n b\n", "\n a", "{{ a }}", "=", ".inf", "'", '"', "\ta", "a \nb", "\u2028", "\x85"]
)  # fmt: skip
PORTS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"label": NAMES}, optional={"beginAt": COUNTS, "portNumber": st.integers(0, 5)}
)
ROLES: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"name": NAMES.filter(lambda n: bool(fc_name(n))), "command": LINES},
    optional={
        "taskNumber": st.integers(3, 9),
        "cpuNumber": COUNTS,
        "memoryMB": COUNTS,
        "shmMB": COUNTS,
        "gpuNumber": COUNTS,
        "portList": st.lists(PORTS, max_size=3, unique_by=lambda p: p["label"]),
        "minFailedTaskCount": st.just(1) | st.none(),
        "minSucceededTaskCount": st.just(1) | st.none(),
    },
)
FOLDERS = st.from_regex(r"(hdfs://[a-z]{1,5}:9000)?/[a-z0-9_./ -]{0,9}", fullmatch=True)
JOBS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "jobName": st.from_regex("[a-zA-Z0-9_-]{1,20}", fullmatch=True),
        "image": (TEXTS | AMBIGUOUS).filter(bool),
        "taskRoles": st.lists(
            ROLES, min_size=1, max_size=3, unique_by=lambda r: fc_name(r["name"])
        ),
    },
    optional={
        "authFile": TEXTS,
        "dataDir": FOLDERS,
        "outputDir": FOLDERS,
        "codeDir": FOLDERS,
        "virtualCluster": TEXTS | AMBIGUOUS,
        "gpuType": TEXTS,
        "retryCount": st.integers(0, 99),
        "killAllOnCompletedTaskNumber": st.integers(0, 3),
        "jobEnvs": st.dictionaries(
            NAMES,
            TEXTS | AMBIGUOUS | st.integers() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False),
            max_size=3,
        ),
        "extras": st.dictionaries(
            KEYS.filter(lambda k: k not in {"pairun", "com.microsoft.pai.runtimeplugin"}), PLAIN, max_size=3
        ),
    },
)  # fmt: skip


@settings(max_examples=cases(75))
@given(JOBS, st.sampled_from([None, 1]))
def test_the_converted_file_is_the_same_job(document: dict[str, Any], indent: int | None) -> None:
    """Printed, and read again in either way, it is the same job, and valid without pairun."""
    text = json.dumps(document, indent=indent).replace("Infinity", "1e999")
    job, problems = read(text)
    assert job is not None, list(map(render, problems))
    Draft202012Validator(JOB_SCHEMA).validate(job.node.plain())
    again, later = read_job(read_text(Source("new.yaml", "job", job.text), JS))
    assert again is not None, list(map(render, later))
    # A key that looks like pairun's is reported in both.
    assert [p for p in later if "in extras has no effect" not in p.message] == []
    assert facts(again) == facts(job)
    assert again.text == as_yaml(again.node.plain())


@settings(max_examples=cases(300))
@given(PLAIN | AMBIGUOUS | st.lists(AMBIGUOUS), st.sampled_from([JS, CORE]))
def test_what_is_written_reads_back(document: Any, dialect: Any) -> None:
    """Whatever plain data holds, both dialects read from the YAML what was written."""
    read_back = read_text(Source("a.yaml", "job", as_yaml({"a": document})), dialect)
    assert read_back.plain() == {"a": document}


@settings(max_examples=cases(40))
@given(st.text(st.characters(codec="utf-8", exclude_characters="\x00\r"), max_size=20)
       | st.sampled_from(["it's", "a<%b%>'", "<% $parameters.x %>", "$HOME `x` \\", "' <%"]))  # fmt: skip
def test_the_shell_gets_a_variable_as_it_was_written(value: str) -> None:
    """No substitution, as the manual of that time said, whatever the value holds."""
    job = job_of(jobEnvs={"x": value}, taskRoles=[{**ROLE, "command": 'printf %s "$x"'}])
    command = user_command(job, job.roles[0])
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=True)
    assert done.stdout.decode() == value


@settings(max_examples=cases(100))
@given(st.dictionaries(st.sampled_from(["jobName", "image", "taskRoles", "jobEnvs", "retryCount",
       "protocolVersion", "extras", "dataDir", "kind", "x"]), PLAIN, max_size=6))  # fmt: skip
def test_any_document_gets_an_answer(document: dict[str, Any]) -> None:
    """A job or an error; never a crash."""
    job, problems = read(json.dumps(document).replace("Infinity", "1e999"))
    assert (job is None) == any(p.severity == "error" for p in problems)

"""A Framework object from a file as a job, each command as a process of its own."""

from __future__ import annotations

import base64
import gzip
import json
import time
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from pairun.errors import Source
from pairun.job.jobfile import read_job
from pairun.job.jsyaml import JS
from pairun.kube.cluster import cluster_from_framework
from pairun.openpai.framework import make_framework, with_statuses
from pairun.playbook.document.reading import read_text

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Shell

# Whole jobs, phase by phase: `make test` leaves them to `make test-slow`.
pytestmark = pytest.mark.slow

SECRETS = """\
secrets:
  token: s3cret-token
"""
COMMANDS = ("--dry-run", "lint", "convert")


def framework(text: str, *, tasks: int = 2, compressed: bool = False) -> dict[str, Any]:
    """The Framework of a job of alice, with the statuses that FrameworkController gives it."""
    job, _ = read_job(read_text(Source("job.yaml", "job", text), JS), user="alice")
    assert job is not None
    pods = [
        {"podUID": f"{n:08}-9bda-11ea-830b-000d3ab25bb6", "podHostIP": "10.0.0.1",
         "podIP": "10.1.0.1", "podName": f"worker-{n}", "startTime": "2020-05-22T03:18:43Z"}
        for n in range(tasks)
    ]  # fmt: skip
    made = with_statuses(make_framework(job), {"worker": pods})
    if compressed:
        statuses = json.dumps(made["status"]["attemptStatus"]["taskRoleStatuses"])
        packed = base64.b64encode(gzip.compress(statuses.encode())).decode()
        made["status"]["attemptStatus"] = {
            "taskRoleStatuses": None,
            "taskRoleStatusesCompressed": packed,
        }
    return made


def stored(shell: Shell, made: Any, name: str = "framework.json") -> Path:
    """An object in a file, as JSON or YAML by the file's name."""
    write = json.dumps if name.endswith(".json") else yaml.safe_dump
    return shell.file(name, write(made))


@pytest.mark.parametrize("name", ["framework.json", "framework.yaml"])
@pytest.mark.parametrize("listed", [False, True], ids=["alone", "in a list"])
def test_every_command_takes_the_job_out_of_it(shell: Shell, name: str, listed: bool) -> None:
    """Review, lint and the job file itself; who submitted it, its labels say."""
    made = framework(shell.job_text)
    if listed:
        made = {"apiVersion": "v1", "kind": "List", "items": [made]}
    file = stored(shell, made, name)
    review = shell.process("--dry-run", file)
    assert (review.code, review.err) == (0, "")
    assert "job mnist of alice" in review.out
    lint = shell.process("lint", file)
    assert (lint.code, lint.out) == (0, "1 file: no problems\n")
    job_file = shell.process("convert", file)
    assert (job_file.code, job_file.out, job_file.err) == (0, shell.job_text, "")


def test_standard_input_holds_one_too(shell: Shell) -> None:
    """As a pipe from kubectl."""
    text = json.dumps(framework(shell.job_text))
    for command in COMMANDS:
        said = shell.process(command, "-", stdin=text)
        assert (said.code, said.err) == (0, "")


def test_it_runs_here(shell: Shell) -> None:
    """``pairun run`` starts the instances of the job, under the name of its user."""
    text = shell.job_text.replace("[train]", "['echo $PAI_USER_NAME said $PAI_JOB_NAME']")
    file = stored(shell, framework(text))
    said = shell.process("run", "--no-namespace", "--workdir", "work", file)
    assert said.code == 0, said.err
    assert "worker-1 | alice said" in said.out


def test_masked_secrets_are_unknown_and_their_tags_stay(shell: Shell) -> None:
    """One note of it; the review shows the tag in the command and in a plugin's parameters."""
    plugin = (
        "extras:\n  com.microsoft.pai.runtimeplugin:\n    - plugin: cmd\n      parameters:\n"
        "        preCommands: ['login <% $secrets.token %>']\n"
    )
    command = "[run <% $secrets.token %>]"
    text = shell.job_text.replace("[train]", command) + SECRETS + plugin
    made = framework(text)
    assert "s3cret" not in json.dumps(made)
    file = stored(shell, made)
    review = shell.process("--dry-run", file)
    assert review.code == 0, review.err
    assert "run <% $secrets.token %>" in review.out
    assert "login <% $secrets.token %>" in review.out
    assert review.ids.count("PR737") == 1
    assert "PR904" not in review.ids
    job_file = shell.process("convert", file)
    assert 'secrets: "******"' in job_file.out
    assert job_file.ids == ["PR737"]
    # Neither can do without: the command, and without it the plugin.
    for each, needs in (
        (made, "worker needs <% $secrets.token %>"),
        (framework(text.replace(command, "[run]")), "$secrets.token"),
    ):
        ran = shell.process("run", "--no-namespace", "--workdir", "work", stored(shell, each))
        assert ran.code == 1
        assert "PR510" in ran.ids
        assert needs in ran.err
        assert not (shell.tmp / "work").exists()


def test_problems_stand_in_the_annotation(shell: Shell) -> None:
    """A broken job is shown by lines of its own text, with the file's name."""
    made = framework(shell.job_text)
    text = made["metadata"]["annotations"]["config"]
    made["metadata"]["annotations"]["config"] = text.replace("instances: 2", "instances: two")
    for name in ("framework.json", "framework.yaml"):
        file = stored(shell, made, name)
        for command in COMMANDS:
            said = shell.process(command, file)
            assert (said.code, said.ids) == (1, ["PR503"])
            assert f"{file}, annotation 'config':8:16" in said.err
            assert "|     instances: two" in said.err
    made["metadata"]["annotations"]["config"] = "a: [\n"
    said = shell.process("--dry-run", stored(shell, made))
    assert (said.code, said.ids) == (1, ["PR101"])


def changed(made: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A Framework with other keys at its top."""
    return {**made, **more}


def test_a_manifest_of_several_objects_is_called_one(shell: Shell) -> None:
    """And not a file to be cut in pieces."""
    file = shell.file("plain.yaml", (shell.project / "examples/plain-pod.yaml").read_text())
    for command in ("--dry-run", "run"):
        said = shell.process(command, file)
        assert (said.code, said.ids) == (1, ["PR735"])
        assert "manifest of Kubernetes with several objects" in said.err
        assert "--runtime-config" in said.err


def test_what_is_no_framework_of_a_job_says_why(shell: Shell) -> None:
    """Other kinds and versions, lists of none or two, none of OpenPAI's."""
    made = framework(shell.job_text)
    cases: list[tuple[Any, str, str]] = [
        (changed(made, kind="Pod", apiVersion="v1"), "PR735", "is a Pod of v1, not a Framework"),
        (changed(made, apiVersion="a/v2"), "PR735", "is a Framework of a/v2"),
        ({k: v for k, v in made.items() if k != "kind"}, "PR735", "is a nameless object"),
        ({"kind": "List", "apiVersion": "v1", "items": []}, "PR735", "list of 0 objects"),
        ({"kind": "FrameworkList", "items": [made, made]}, "PR735", "list of 2 objects"),
        ({"kind": "List", "items": [3]}, "PR735", "list of 1 objects"),
        (changed(made, metadata={"name": "a"}), "PR704", "no annotation 'config'"),
        (changed(made, metadata=None), "PR704", "no annotation 'config'"),
    ]
    for document, id_, words in cases:
        for name in ("framework.json", "framework.yaml"):
            said = shell("--dry-run", stored(shell, document, name))
            assert (said.code, said.ids) == (1, [id_]), document
            assert words in said.err
            assert ("pairun inject" in said.err) == ("is a Pod" in words)


def test_a_file_that_was_cut_off_says_where_it_ends(shell: Shell) -> None:
    """No excerpt of it, which might show a secret."""
    text = json.dumps(framework(shell.job_text), indent=2)
    for at in (len(text) - 2, len(text) // 2, text.index("annotations") + 40):
        said = shell.process("--dry-run", shell.file("framework.json", text[:at]))
        assert (said.code, said.ids) == (1, ["PR736"])
        assert "framework.json is not JSON: it ends too early" in said.err
        assert "   |" not in said.err


def test_a_key_that_is_given_twice_is_an_error_at_its_place(shell: Shell) -> None:
    """Which of the values was meant is unknown."""
    text = json.dumps(framework(shell.job_text), indent=2)
    twice = text.replace("{\n", '{\n  "kind": "Framework",\n', 1)
    line = 1 + twice[: twice.rindex('\n  "kind"') + 1].count("\n")
    said = shell("--dry-run", shell.file("framework.json", twice))
    assert (said.code, said.ids) == (1, ["PR106"])
    assert "'kind' is given twice" in said.err
    assert f"framework.json:{line}:3" in said.err


def test_json_that_is_no_json_gets_an_answer(shell: Shell) -> None:
    """A comma too many is YAML still; a wrong sign has a place; depth has a bound."""
    text = json.dumps(framework(shell.job_text), indent=2)
    assert shell("lint", shell.file("framework.json", text[:-2] + ",\n}")).code == 0
    said = shell("lint", shell.file("framework.json", text.replace('"kind":', '"kind"', 1)))
    assert (said.code, said.ids) == (1, ["PR736"])
    assert "framework.json:3:10" in said.err
    deep = '{"kind": "Framework", "a": ' + "[" * 100_000
    said = shell("--dry-run", shell.file("framework.json", deep))
    assert (said.code, said.ids) == (1, ["PR104"])


@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "compressed"])
def test_ten_thousand_tasks_are_read_in_seconds(shell: Shell, compressed: bool) -> None:
    """From 700 KiB on FrameworkController compresses the statuses; a dump may be inflated."""
    text = shell.job_text.replace("instances: 2", "instances: 10000")
    made = framework(text, tasks=10_000, compressed=compressed)
    file = stored(shell, made)
    assert compressed or file.stat().st_size > 700 * 1024
    begun = time.monotonic()
    for command in COMMANDS:
        said = shell.process(command, file)
        assert (said.code, said.err) == (0, "")
    assert time.monotonic() - begun < 20  # under 2 s alone; the machine may be busy
    cluster = cluster_from_framework(json.loads(file.read_bytes()), "worker", 9_999, {})
    assert cluster.own is not None
    assert cluster.own.pod_uid == "00009999-9bda-11ea-830b-000d3ab25bb6"


def test_a_bomb_in_the_statuses_costs_nothing(shell: Shell) -> None:
    """A review does not look at them, and who does stops at a bound."""
    made = framework(shell.job_text)
    bomb = base64.b64encode(gzip.compress(b"[" + b" " * (1 << 28))).decode()
    made["status"] = {"attemptStatus": {"taskRoleStatusesCompressed": bomb}}
    assert shell.process("--dry-run", stored(shell, made)).code == 0
    with pytest.raises(Exception, match="too large: more than 64 MiB"):
        cluster_from_framework(made, "worker", 0, {})


def test_a_job_that_only_mentions_an_object_is_a_job(shell: Shell) -> None:
    """Words of Kubernetes deep in a job, or as a wrong key of one, change nothing."""
    job = yaml.safe_load(shell.job_text)
    job["extras"] = {"manifest": {"apiVersion": "v1", "kind": "Pod"}}
    assert shell.process("lint", shell.file("job.json", json.dumps(job))).code == 0
    job["kind"] = "job"
    said = shell.process("lint", shell.file("job.json", json.dumps(job)))
    assert (said.code, said.ids) == (1, ["PR502"])
    said = shell.process("lint", shell.file("job.yaml", "kind: job\n" + shell.job_text))
    assert (said.code, said.ids) == (1, ["PR502"])

"""``pairun --dry-run``: the review of a job, its exit codes, its JSON, and that it has no effect."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Shell

SENTINEL = 'pass"w&rd/zone 4711'
WIDTH = 100


# --- exit codes ----------------------------------------------------------------------------------


def test_a_valid_job_exits_with_0(shell: Shell) -> None:
    """A review without errors is a success, whatever would change."""
    said = shell.process("--dry-run", shell.job())
    assert (said.code, said.err) == (0, "")
    assert "role worker" in said.out


def test_errors_exit_with_1_and_stand_on_standard_error(shell: Shell) -> None:
    """An error anywhere makes it 1, and the review is printed all the same."""
    said = shell.process("--dry-run", shell.job("init: [{patch: nothing}]"))
    assert said.code == 1
    assert said.ids == ["PR401"]
    assert said.err.endswith("1 error\n")
    assert "role worker" in said.out


def test_a_mistake_in_a_role_hides_none_in_the_overrides(shell: Shell) -> None:
    """All problems come at once: those of the job, and those of ``extras.pairun``."""
    path = Path(shell.job("init: [{patch: nothing}]"))
    text = path.read_text()
    assert "instances: " in text
    path.write_text(text.replace("instances: ", "instances: x", 1))
    assert set(shell("--dry-run", str(path)).ids) == {"PR401", "PR503"}


def test_with_exit_code_a_change_is_2(shell: Shell) -> None:
    """``--exit-code`` tells scripts that something would change; an error is still 1."""
    job, bad = shell.job(), shell.job("init: [{patch: nothing}]", path="bad.yaml")
    assert shell("--dry-run", "--exit-code", job).code == 2
    assert shell("--dry-run", "--exit-code", job, "--json").code == 2
    assert shell("--dry-run", "--exit-code", bad).code == 1
    still = shell.root(
        {
            "playbooks/init.yaml": "phase: init\ntasks: []\n",
            "playbooks/runtime.yaml": "phase: runtime\ntasks: [{name: N, cmd: {script: ''}}, "
            "{name: C, user_command: {script: a}}]\n",
        }
    )
    # the user's command is not counted: of it nobody knows what it changes
    assert shell("--dry-run", "--exit-code", job, "--root", still).code == 0


def test_warnings_do_not_change_the_exit_code(shell: Shell) -> None:
    """What may surprise is said, and is no error."""
    said = shell("--dry-run", shell.job(more="secrets: {pin: '12'}\n"))
    assert (said.code, said.ids) == (0, ["PR905"])


@pytest.mark.parametrize("argv", [["--dry-run"], ["--dry-run", "--json"]])
def test_no_job_is_a_usage_error(shell: Shell, argv: list[str]) -> None:
    """A review needs a job file, and says how to give one."""
    said = shell(*argv)
    assert said.code == 2
    assert "PR801" in (said.out if "--json" in argv else said.err)


# --- several jobs, standard input, roles ------------------------------------------------------------


def test_several_jobs_are_reviewed_one_after_the_other(shell: Shell) -> None:
    """Each job has its review; the worst decides the exit code; JSON has them by file."""
    good, bad = shell.job(path="good.yaml"), shell.file("bad.yaml", "nonsense: 1\n")
    said = shell("--dry-run", good, bad)
    assert said.code == 1
    assert said.out.count("content roots:") == 2
    assert "bad.yaml is not valid" in " ".join(said.out.split())
    data = shell("--dry-run", "--json", good, bad).data
    assert data["schema"] == 1
    assert [*data["jobs"]] == [str(good), str(bad)]
    assert data["jobs"][str(good)]["roles"]["worker"]["init"]
    assert {p["id"] for p in data["jobs"][str(bad)]["problems"]} == {"PR502", "PR504"}


def test_standard_input_is_reviewed(shell: Shell) -> None:
    said = shell.process("--dry-run", "-", stdin=shell.job_text)
    assert said.code == 0
    assert "job mnist of user · 1 role, 2 instances · -" in said.out
    assert shell.process("--dry-run", "--json", "-", stdin=shell.job_text).data["roles"]


def test_one_role_can_be_chosen_by_either_name(shell: Shell) -> None:
    """``--role`` takes the raw name and the Pods' name; another one is an error."""
    text = shell.job_text.replace("  worker:", "  Work_er:") + shell.job_text[
        shell.job_text.index("  worker:") :
    ].replace("worker", "server")
    job = shell.file("job.yaml", text)
    for name in ("Work_er", "worker"):
        data = shell("--dry-run", "--json", "--role", name, job).data
        assert [*data["roles"]] == ["Work_er"]
    said = shell("--dry-run", "--role", "workr", job)
    assert said.code == 1
    assert "PR509" in said.ids
    assert "did you mean 'Work_er'?" in said.err
    assert said.out == ""


# --- content roots ---------------------------------------------------------------------------------


def test_the_first_line_names_the_roots_and_their_digests(shell: Shell) -> None:
    """Who reads a review sees with which defaults it was made."""
    first = shell("--dry-run", shell.job()).out.splitlines()[0]
    assert first.startswith("pairun ")
    assert "content roots: built-in " in first
    assert "using built-in defaults only" in first
    digest = shell("--version").out.split("built-in playbooks ")[1][:12]
    assert digest in first
    root = shell.root({"playbooks/policy.yaml": shell.all_open}, "c")
    out = shell("--dry-run", shell.job(), "--root", "c").out
    assert "cluster c " in out.splitlines()[0]
    assert "using built-in defaults only" not in out
    shell.file("c/playbooks/int.yaml", "")
    out = shell("--dry-run", shell.job(), "--root", "c").out
    assert "pairun does not read c/playbooks/int.yaml" in " ".join(out.split())
    os.rename(root, shell.tmp / "d")


@pytest.mark.parametrize("how", ["--root", "PAIRUN_PATH", "PAI_CONFIG_DIR"])
def test_a_clusters_layer_comes_in_three_ways(shell: Shell, how: str) -> None:
    """The option, the path and the folder of files change what a job runs."""
    runtime = "phase: runtime\ntasks: [{id: mine, name: M, cmd: {argv: [x]}}]\n"
    name = "runtime.yaml" if how == "PAI_CONFIG_DIR" else "playbooks/runtime.yaml"
    root = shell.root({name: runtime})
    if how == "--root":
        said = shell.process("--dry-run", "--json", shell.job(), "--root", root)
    else:
        said = shell.process("--dry-run", "--json", shell.job(), env={how: str(root)})
    (task,) = said.data["roles"]["worker"]["runtime"]
    assert (task["id"], task["layer"]) == ("mine", "cluster")


# --- JSON ------------------------------------------------------------------------------------------


def test_json_has_the_documented_shape(shell: Shell) -> None:
    """Roles by raw name, the command as the REST server renders it, both phases, problems."""
    more = "parameters: {epochs: 3}\nsecrets: {token: hunter2hunter2}\n"
    text = shell.job_text.replace(
        "[train]", '["  train <% $parameters.epochs %> <% $secrets.token %>  "]'
    )
    said = shell.process("--dry-run", "--json", shell.file("job.yaml", text + more))
    data = said.data
    assert [*data] == ["schema", "roles", "problems"]
    role = data["roles"]["worker"]
    assert [*role] == ["user_command", "init", "runtime"]
    assert role["user_command"] == "train 3 <% $secrets.token %>"
    for phase in ("init", "runtime"):
        for task in role[phase]:
            expected = {"id", "name", "module", "layer", "where", "verdict", "because"}
            assert expected <= task.keys()
            assert task["verdict"] in ("no_change", "will_change", "unknown", "check")
    command = role["runtime"][-1]
    assert command["id"] == "user_command"
    assert command["args"]["script"] == "train 3 ******"


def test_json_says_what_is_unknown_and_because_of_what(shell: Shell) -> None:
    """What depends on peers is unknown, with the reason and the expression."""
    tasks = shell("--dry-run", "--json", shell.job()).data["roles"]["worker"]["init"]
    environment = next(t for t in tasks if t["id"] == "job_environment")
    assert environment["verdict"] == "unknown"
    assert environment["because"] == "depends on the addresses of the peers"
    assert environment["args"]["cluster"]["template"] == "{{ cluster.summary }}"


def test_json_shows_groups_handlers_overrides_and_what_is_disabled(shell: Shell) -> None:
    root = shell.root(
        {
            "playbooks/policy.yaml": shell.all_open,
            "playbooks/runtime.yaml": """\
phase: runtime
tasks:
  - parallel: At once
    tasks:
      - id: a
        name: A
        cmd: {argv: [a]}
        retries: 2
        timeout: 3s
        environment: {X: y}
        exit_codes: {timeout: 9}
        on_exit: [{name: Bye, event: [failure], cmd: {argv: [b]}}]
      - {id: b, name: B, cmd: {argv: [b]}}
""",
        }
    )
    job = shell.job("runtime: [{patch: a, retries: 4, delay: 2s}, {disable: b}]")
    a, b = shell("--dry-run", "--json", job, "--root", root).data["roles"]["worker"]["runtime"]
    assert (a["parallel"], a["retries"], a["delay"], a["timeout"]) == ("At once", 4, "2s", "3s")
    assert (a["environment"], a["exit_codes"]) == ({"X": "y"}, {"timeout": 9})
    (handler,) = a["on_exit"]
    assert (handler["id"], handler["event"], handler["failure_policy"]) == (
        "a.on_exit",
        ["failure"],
        "ignore",
    )
    retries, delay = a["overrides"]
    assert (retries["path"], retries["value"], retries["layer"]) == ("retries", 4, "job")
    assert retries["was"]["value"] == 2
    assert (delay["path"], delay["value"], delay["was"]["value"]) == ("delay", "2s", None)
    assert b["disabled"].endswith("(job)")


def test_json_is_all_of_standard_output_on_every_error(shell: Shell) -> None:
    """A program that reads standard output always gets one document with the problems."""
    module = shell.root(
        {
            "modules/cmd.py": "1 / 0\n",
            "playbooks/runtime.yaml": "phase: runtime\ntasks: [{name: N, cmd: {}}]\n",
        },
        "m",
    )
    cases: list[tuple[list[object], str]] = [
        ([shell.file("not.yaml", "a: [\n")], "PR101"),
        ([shell.tmp / "absent.yaml"], "PR108"),
        ([shell.job(path="a"), "--root", shell.tmp / "absent"], "PR601"),
        ([shell.job(path="b"), "--root", shell.root({"playbooks/init.yaml": "a: [\n"}, "y")], "PR101"),
        ([shell.job(path="c"), "--root", shell.root({"playbooks/init.yaml": "x: 1\n"}, "z")], "PR201"),
        ([shell.job(path="d"), "--root", shell.root({"modules/when.py": ""}, "k")], "PR213"),
        ([shell.job(path="e"), "--root", module], "PR602"),
        ([shell.job("init: [{patch: a}]", path="f")], "PR401"),
        ([], "PR801"),
        ([shell.job(path="g"), "--why", "a.b"], "PR801"),
    ]  # fmt: skip
    for argv, id_ in cases:
        said = shell("--dry-run", "--json", *argv)
        assert said.code == (2 if id_ == "PR801" else 1)
        data = said.data
        assert [*data] == ["schema", "roles", "problems"]
        assert id_ in {p["id"] for p in data["problems"]}, (argv, data["problems"])
        assert said.err == ""


# --- why -------------------------------------------------------------------------------------------


def test_why_prints_the_chain_of_who_set_what(shell: Shell) -> None:
    """The value in force comes first, then what it took the place of, with layers and places."""
    shell.root(
        {
            "playbooks/init.yaml": """\
phase: init
tasks:
  - id: git_clone
    name: The code is here
    git_clone: {repo: "https://example.org/x", dest: /code, depth: 9}
"""
        },
        "low",
    )
    shell.root(
        {
            "playbooks/init.yaml": "phase: init\npatches: [{patch: git_clone, args: {depth: 5}}]\n",
        },
        "high",
    )
    job = shell.job("init: [{patch: git_clone, args: {depth: 1}}]")
    argv = ["--dry-run", job, "--root", "low", "--root", "high", "--why", "git_clone.args.depth"]
    said = shell(*argv)
    assert said.code == 0
    text = " ".join(said.out.split())
    assert text.startswith("git_clone.args.depth (role worker) 1 ← job")
    assert "└ 5 ← cluster high/playbooks/init.yaml:2:44" in text
    assert text.endswith("└ 9 ← cluster low/playbooks/init.yaml:5:68")


WITH_PARAMETERS = """\
protocolVersion: 2
name: j
type: job
parameters: {go: true}
prerequisites:
  - {name: i, type: dockerimage, uri: "ubuntu:22.04"}
  - {name: hello, type: script, plugin: com.microsoft.pai.runtimeplugin.greet, word: hi}
taskRoles:
  worker:
    dockerImage: i
    resourcePerInstance: {cpu: 1, memoryMB: 1024, gpu: 0}
    commands: [train]
    prerequisites: [hello]
extras:
  com.microsoft.pai.runtimeplugin:
    - {plugin: git, parameters: {repo_uri: "https://a/b", clone_dir: /code}}
    - {plugin: ssh, parameters: {jobssh: true}}
  pairun:
    runtime: [{patch: user_command, when: parameters.go}]
"""
GREET = """\
summary: Greet
parameters: {type: object}
runtime:
  - {name: Greet, cmd: {argv: [echo, "{{ parameters.word }}"]}}
"""
SOURCES = [
    ("git.args.repo", '"https://a/b" ← job job.yaml:16:44, parameter repo_uri └ "{{ parameters.repo_uri }}" ← built-in'),
    ("git.args.lfs", ", default of parameter lfs └ "),
    ("git_2.environment.CLONE_DIR", '"/code" ← job job.yaml:16:70, parameter clone_dir └ '),
    ("ssh.args.saved_keys", '"unknown until run" ← platform the mounted user extension'),
    ("barrier.args.gang", ', variable gang └ "{{ gang }}" ← built-in playbooks/init.yaml:'),
    ("hello.args.argv", '"hi" ← job job.yaml:7:86, parameter word └ ["echo", "{{ parameters'),
    ("user_command.when", 'true ← job job.yaml:4:18, parameter go └ "parameters.go" ← job'),
]  # fmt: skip


@pytest.mark.parametrize(("path", "chain"), SOURCES, ids=[path for path, _ in SOURCES])
def test_why_follows_parameters(shell: Shell, path: str, chain: str) -> None:
    """A value of a plugin is the job's: its line first, then the text of the spec that uses it."""
    shell.root({"playbooks/policy.yaml": shell.all_open, "plugin_specs/greet.yaml": GREET})
    shell.file("job.yaml", WITH_PARAMETERS)
    said = shell("--dry-run", "--root", "cluster", "job.yaml", "--why", path)
    assert said.code == 0, said.err
    assert chain in " ".join(said.out.split())


def test_every_view_names_the_line_of_a_parameter(shell: Shell) -> None:
    """The text with every value, the page and the JSON."""
    shell.root({"playbooks/policy.yaml": shell.all_open, "plugin_specs/greet.yaml": GREET})
    shell.file("job.yaml", WITH_PARAMETERS)
    argv = ("--dry-run", "--root", "cluster", "job.yaml")
    assert (
        "repo: https://a/b  ← job job.yaml:16:44, parameter repo_uri" in shell(*argv, "--full").out
    )
    assert "job job.yaml:16:44, parameter repo_uri</span>" in shell(*argv, "--html", "-").out
    (git,) = (t for t in shell(*argv, "--json").data["roles"]["worker"]["init"] if t["id"] == "git")
    assert {"path": "args.repo", "value": "https://a/b", "layer": "job", "where": "job.yaml:16:44",
            "source": "parameter repo_uri"} in git["sources"]  # fmt: skip


PLAIN_SECRETS = [
    ("commands: [train]", "commands: ['export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENG']"),
    ("commands: [train]", "commands: ['aws configure set x AKIAIOSFODNN7EXAMPLE']"),
    ("https://a/b", "https://ghp_012345678901234567890123456789012345@a/b"),
    ("https://a/b", "https://me:hunter2hunter2@a/b"),
    ("word: hi", "word: hi, token: hunter2hunter2"),
]


@pytest.mark.parametrize(("text", "secret"), PLAIN_SECRETS)
@pytest.mark.parametrize("argv", [["lint"], ["plan", "--full"], ["plan", "--json"]])
def test_a_secret_in_plain_text_is_a_warning(
    shell: Shell, text: str, secret: str, argv: list[str]
) -> None:
    """One warning at its line, and nothing shows the value."""
    shell.root({"playbooks/policy.yaml": shell.all_open, "plugin_specs/greet.yaml": GREET})
    job = shell.file("job.yaml", WITH_PARAMETERS.replace(text, secret))
    said = shell(*argv, "--root", "cluster", job)
    assert said.code == 0, said.err
    assert (said.out + said.err).count("PR937") == 1
    for value in ("wJalrXUtnFEMIK7MDENG", "AKIAIOSFODNN7EXAMPLE", "ghp_0123", "hunter2"):
        assert value not in said.out + said.err


def test_only_the_assignment_of_a_short_word_is_masked(shell: Shell) -> None:
    """The same word in another sentence is no secret, and a review without it says nothing."""
    commands = "['mysql --password=train --user=x', 'echo train the model; TOKEN=\"train\"']"
    job = shell.job_text.replace("[train]", commands)
    out = shell("plan", "--full", shell.file("job.yaml", job)).out
    assert "train the model" in out
    assert "=train" not in out
    assert '="train' not in out


def test_what_only_looks_like_a_secret_is_none(shell: Shell) -> None:
    """Variables, tags and flags."""
    commands = (
        "['run --token=$TOKEN --password=\"$P\" --use-token=true <% $secrets.a %>',"
        " 'train --max_token=2048 --token=/run/secrets/hf mask_token=[MASK] pad_token=none']"
    )
    job = shell.job_text.replace("[train]", commands) + "secrets: {a: 1}\n"
    assert "PR937" not in shell("plan", shell.file("job.yaml", job)).ids


def test_why_marks_what_the_policy_refuses(shell: Shell) -> None:
    """Of a chain only the value that is refused."""
    policy = "job_may: {}\npod:\n  defaults: {queue: team}\n  set: [shm]\n"
    shell.root({"playbooks/policy.yaml": policy})
    shell.job("pod: {queue: mine, shm: 1Gi}")
    argv = ("--dry-run", "job.yaml", "--root", "cluster", "--why")
    lines = shell(*argv, "pod.queue").out.splitlines()
    assert [line.endswith(", refused") for line in lines] == [False, True, False]
    assert "refused" not in shell(*argv, "pod.shm").out


def test_why_finds_ids_with_dots_and_values_at_any_depth(shell: Shell) -> None:
    """An id may have dots, and so may the path below it."""
    root = shell.root(
        {
            "playbooks/runtime.yaml": """\
phase: runtime
tasks:
  - {id: a, name: A, cmd: {argv: [a]}}
  - {id: a.b, name: B, cmd: {argv: [x, y]}, environment: {N: v}}
"""
        }
    )
    argv = ["--dry-run", shell.job(), "--root", root]
    assert '"y"' in shell(*argv, "--why", "a.b.args.argv.1").out
    assert '"v"' in shell(*argv, "--why", "a.b.environment.N").out
    assert '["a"]' in shell(*argv, "--why", "a.args.argv").out


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("barrir.retries", "did you mean 'barrier'?"),
        ("barrier.retries.x", "did you mean 'barrier.retries'?"),
        ("barrier", "begin a path with an id and a keyword"),
        ("pod.spec.toleration", "did you mean 'tolerations'?"),
        ("pod.grace", "known here: hived_skus, init_resources, metadata"),
        ("", "no such setting: "),
    ],
)
def test_why_names_a_slip_in_a_path(shell: Shell, path: str, hint: str) -> None:
    """A path that leads to no setting is an error."""
    said = shell("--dry-run", shell.job(), "--why", path)
    assert said.code == 1
    assert "PR401" in said.ids
    assert hint in said.err


def test_why_prints_no_warnings_and_blames_no_path_for_a_missing_file(shell: Shell) -> None:
    """The answer and errors only; a file that cannot be read has one error."""
    torchrun = shell.file("torchrun.yaml", shell.job_text.replace("[train]", "[torchrun x]"))
    said = shell("--dry-run", torchrun, "missing.yaml", "--why", "barrier.retries")
    assert said.ids == ["PR108"]
    assert "barrier.retries (role " in said.out
    assert said.err.endswith("1 error\n")


def test_a_count_of_errors_names_the_warnings(shell: Shell) -> None:
    """Both numbers, and the plural of each."""
    text = shell.job_text.replace("[train]", "['echo $X; torchrun y']")
    job = shell.file("job.yaml", text + "extras: {pairun: {pod: {nope: 1}}}\n")
    assert shell("lint", job).err.endswith("1 error, 2 warnings\n")


@pytest.mark.parametrize(
    ("path", "default"),
    [
        ("barrier.retries", "0  ← default of the keyword retries"),
        ("barrier.failure_policy", "fail  ← default of the keyword failure_policy"),
        ("user_command.args.shell", '"auto"  ← default of the module user_command'),
        ("user_command.environment.HOME", "none  ← default of the keyword environment"),
        ("pod.queue", "none  ← no layer sets it: the cluster decides"),
    ],
)
def test_why_shows_the_default_of_what_no_layer_sets(shell: Shell, path: str, default: str) -> None:
    """A setting that exists is no error where nothing sets it."""
    said = shell("--dry-run", shell.job(), "--why", path)
    assert (said.code, said.ids) == (0, [])
    assert f"{path} (role " in said.out
    assert f"  {default}\n" in said.out


# --- secrets ---------------------------------------------------------------------------------------


def forms(secret: str) -> list[str]:
    """The forms in which a secret could be printed, and its halves."""
    encoded = base64.b64encode(secret.encode()).decode().rstrip("=")[:-1]
    half = len(secret) // 2
    return [
        secret, json.dumps(secret)[1:-1], quote(secret, safe=""), encoded,
        secret[:half], secret[half:], "4711",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "flags", [[], ["--json"], ["--html", "-"], ["--why", "echo.args.argv"], ["lint"]]
)
def test_secrets_of_a_job_are_never_shown(shell: Shell, flags: list[str]) -> None:
    """Not in values, names, overrides, verdicts, excerpts or messages, whole or in halves."""
    root = shell.root(
        {
            "playbooks/policy.yaml": shell.all_open,
            "plugin_specs/greet.yaml": """\
summary: S
parameters:
  properties:
    list: {uniqueItems: true}
    fixed: {const: 1}
runtime:
  - name: Greet {{ parameters.who }}
    cmd: {script: "echo\\n{{ parameters.who }}\\n", workdir: "/{{ parameters.who }}"}
    when: parameters.who | length > 1 + parameters.who
  - name: Again
    cmd: {argv: ["{{ job.image.auth.password }}", "{{ parameters['x' ~ parameters.who] }}"]}
  - name: And again
    cmd: {argv: ["{{ job.image.auth.password }}"], script: "{{ parameters.who }}"}
""",
        }
    )
    secret = json.dumps(SENTINEL)
    text = f"""\
protocolVersion: 2
name: mnist
type: job
prerequisites:
  - {{name: image, type: dockerimage, uri: "ubuntu:22.04", auth: {{username: u, password: {secret}, registryuri: r}}}}
taskRoles:
  worker:
    dockerImage: image
    resourcePerInstance: {{cpu: 1, memoryMB: 1024, gpu: 0}}
    commands: ["a <% $secrets.token %>", "b"]
secrets:
  token: {secret}
  number: 4711471147
  unfit:
    - {secret}
extras:
  com.microsoft.pai.runtimeplugin:
    - plugin: greet
      parameters: {{who: "<% $secrets.token %>", list: ["<% $secrets.token %>", "<% $secrets.token %>"], fixed: "<% $secrets.token %>"}}
    - plugin: ssh
      parameters: {{jobssh: "<% $secrets.token %>"}}
  pairun:
    runtime:
      - append:
        id: echo
        name: {json.dumps("Say " + SENTINEL)}
        cmd: {{argv: [echo, {secret}, "{{{{ job.image.auth.password }}}}"], ok_codes: "{{{{ job.image.auth.password }}}}"}}
        environment: {{A: {secret}, B: "{{{{ job.user_command }}}}"}}
        when: 'job.image.auth.password > 5'
      - patch: mount_storage
        args: {{configs: [{secret}]}}
"""
    job = shell.file("job.yaml", text)
    argv = (
        ["lint", job, "--root", root]
        if flags == ["lint"]
        else ["--dry-run", *flags, job, "--root", root]
    )
    said = shell.process(*argv, env={"COLUMNS": "80"})
    for form in forms(SENTINEL):
        assert form not in said.out, form
        assert form not in said.err, form
    assert "******" in said.out + said.err


def test_secrets_of_a_job_that_is_not_valid_are_not_shown(shell: Shell) -> None:
    """Neither in excerpts of a job that cannot be read, nor of one that does not fit."""
    for bad in ("a: [\n", "nonsense: 1\n", "name: 5\n"):
        text = (
            f"secrets:\n  token: {SENTINEL}\n  bad: [{SENTINEL}\n{bad}"
            if "[" in bad
            else (f"secrets:\n  token: {SENTINEL}\n{bad}")
        )
        for flags in ([], ["--json"], ["--html", "-"]):
            said = shell.process("--dry-run", shell.file("job.yaml", text), *flags)
            assert said.code == 1
            assert "4711" not in said.out + said.err


# --- for people ------------------------------------------------------------------------------------

LONG = "word " * 40
WIDE: dict[str, str] = {
    "playbooks/policy.yaml": "",
    "playbooks/runtime.yaml": f"""\
phase: runtime
tasks:
  - parallel: {LONG}
    tasks:
      - id: {"x" * 60}
        name: {LONG}
        cmd: {{argv: [{", ".join(["argument"] * 40)}], creates: /{"d" * 150}}}
        environment: {{{"V" * 50}: {LONG}}}
        retries: 3
        delay: 2s
        timeout: 1h
        deadline: 2d
        on_exit: [{{name: {LONG}, event: always, cmd: {{script: {LONG}}}}}]
      - {{id: short, name: Short, cmd: {{script: "{{{{ cluster.own.x ~ '{LONG}' }}}}"}}}}
  - {{id: user_command, name: The command, user_command: {{script: "{{{{ job.user_command }}}}"}}, locked: true}}
""",
}


GANG = """\
protocolVersion: 2
name: three
type: job
prerequisites: [{name: i, type: dockerimage, uri: 'ubuntu:22.04'}]
taskRoles:
  ps: {instances: 2, dockerImage: i, resourcePerInstance: {cpu: 4, memoryMB: 8192, gpu: 0}, commands: [serve]}
  worker: {instances: 8, dockerImage: i, resourcePerInstance: {cpu: 8, memoryMB: 65536, gpu: 8}, commands: [train]}
  eval: {dockerImage: i, resourcePerInstance: {cpu: 4, memoryMB: 8192, gpu: 1}, commands: [eval]}
extras:
  com.microsoft.pai.runtimeplugin:
    - {plugin: ssh, parameters: {jobssh: true}}
    - {plugin: git, parameters: {repo_uri: 'https://example.com/a.git', clone_dir: /code}}
    - {plugin: tensorboard, parameters: {port: 6006, logdir: {a: /logs/a}}}
    - {plugin: cmd, parameters: {preCommands: [echo a], postCommands: [echo b]}}
    - {plugin: cmd, parameters: {preCommands: [echo c]}, taskroles: [worker]}
    - {plugin: cmd, parameters: {preCommands: [echo d]}, taskroles: [ps]}
    - {plugin: git, parameters: {repo_uri: 'https://example.com/b.git', clone_dir: /b}, taskroles: [eval]}
    - {plugin: cmd, parameters: {preCommands: [echo e]}}
"""


def test_a_gang_fits_on_a_screen(shell: Shell) -> None:
    """Three roles with eight plugins are at most 60 lines of 80 columns, tasks in run order."""
    said = shell.process("--dry-run", shell.file("gang.yaml", GANG), env={"COLUMNS": "80"})
    assert said.code == 0, said.err
    lines = said.out.splitlines()
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 80
    runtime = lines[lines.index("  runtime") :]
    ids = [line.split()[1] for line in runtime if line[4:6] in ("? ", "$ ")]
    assert ids[:5] == ["ssh", "git_2", "tensorboard", "cmd", "cmd_2"]
    assert ids.index("user_command") > ids.index("cmd_2")
    summary = "40 tasks: 7 write, 11 run a command, 8 unknown until run, 9 checks, 5 skipped"
    assert " ".join(lines[-2:]).endswith(summary)


def test_reasons_are_told_once(shell: Shell) -> None:
    """Why something is not known stands once, with the tasks that it holds for, whatever the roles."""
    out = shell("--dry-run", shell.file("gang.yaml", GANG)).out
    assert out.count("depends on the user's extension") == 1
    assert out.count("init: as in role ps") == 1
    assert " tasks as in role ps" in out


def test_a_check_that_does_not_check_is_not_folded(shell: Shell) -> None:
    """What somebody decided has a line of its own: a check of the cluster, one with an override."""
    override = "extras: {pairun: {init: [{patch: image_check, retries: 5}]}}\n"
    runtime = "phase: init\npatches: [{append: null, id: mine, name: My own check, image_check: {image: other}}]\n"
    root = shell.root({"playbooks/init.yaml": runtime, "playbooks/policy.yaml": shell.all_open})
    said = shell("--dry-run", "--root", root, shell.file("job.yaml", shell.job_text + override))
    assert said.code == 0, said.err
    out = said.out
    assert "! mine               My own check" in out
    assert "cluster: " in out
    assert "! image_check " in out
    assert "retries = 5" in out
    assert "! 2 checks: barrier, port_check" in out


def test_the_review_fits_the_width(shell: Shell) -> None:
    """No line is wider than 100 columns, except lines of commands, which are shown as they are."""
    files = {**WIDE, "playbooks/policy.yaml": shell.all_open}
    roots = [shell.root(files, f"{'deep/' * 8}cluster{n}") for n in range(4)]
    text = shell.job_text.replace("ubuntu:22.04", "registry.example.org/" + "a" * 150)
    text = text.replace("commands: [train]", 'commands: ["one", "' + "y" * 150 + '"]')
    pairun = f"""\
extras:
  pairun:
    runtime:
      - patch: short
        args: {{script: {LONG}}}
      - disable: {"x" * 60}
      - append:
        id: added
        name: {LONG}
        cmd: {{argv: [x]}}
"""
    job = shell.file("long/" * 12 + "job.yaml", text + pairun)
    argv = [a for r in roots for a in ("--root", r)]
    brief = shell.process("--dry-run", job, *argv)
    assert not [x for x in brief.out.splitlines() if len(x) > WIDTH]
    said = shell.process("--dry-run", "--full", job, *argv)
    assert said.code == 0, said.err
    wide = [x for x in said.out.splitlines() if len(x) > WIDTH]
    assert [x.strip() for x in wide] == ["| " + "y" * 150]
    without = shell.process("--dry-run", "--full", shell.file("job.yaml", text), *argv)
    assert [x.strip() for x in without.out.splitlines() if len(x) > WIDTH] == ["| " + "y" * 150]
    why = shell.process("--dry-run", job, *argv, "--why", "short.args.script")
    assert all(len(x) <= WIDTH for x in why.out.splitlines())


def test_the_review_obeys_the_jobs_text_in_nothing(shell: Shell) -> None:
    """Control characters in a job cannot hide lines from a reviewer's terminal."""
    text = shell.job_text.replace("[train]", '["evil\\e[2K\\e[1A", "second\\rfirst"]')
    job = shell.file("job.yaml", text + 'extras: {pairun: {init: [{patch: "a\\e[2Kb"}]}}\n')
    said = shell("--dry-run", job)
    out = said.out
    assert "\033" not in said.err
    assert "\033" not in out
    assert "\r" not in out
    assert "evil\N{REPLACEMENT CHARACTER}[2K" in out


def test_colours_are_for_terminals_only(shell: Shell) -> None:
    """What is piped has no escape sequences, whatever TERM says."""
    said = shell.process(
        "--dry-run", shell.job("init: [{patch: x}]"), env={"TERM": "xterm-256color"}
    )
    assert "\033" not in said.out + said.err


def test_handlers_are_shown_in_the_order_they_run(shell: Shell) -> None:
    """The last registered handler stands first, with the outcomes it runs for."""
    runtime = """\
phase: runtime
tasks:
  - {id: a, name: A, cmd: {argv: [a]}, on_exit: [{name: First, event: always, cmd: {argv: [x]}}]}
  - {id: b, name: B, cmd: {argv: [b]}, on_exit: [{name: Second, event: [failure], cmd: {argv: [x]}}]}
"""
    root = shell.root({"playbooks/runtime.yaml": runtime})
    out = shell("--dry-run", "--full", shell.job(), "--root", root).out
    assert out.index("Second") < out.index("First")
    assert "on failure" in out
    assert "on always" in out


def test_the_real_examples_are_reviewed(shell: Shell) -> None:
    """Every job in examples/ can be reviewed, and says what its own comment promises."""
    found = sorted((shell.project / "examples").glob("*.yaml"))
    # What `pairun inject` changes or reads is no job.
    no_jobs = ("plain-pod", "inject-job", "inject-jobset", "inject-changes", "inject-serving")
    examples = [p for p in found if p.stem not in no_jobs]
    assert examples
    for path in examples:
        said = shell("--dry-run", "--json", path)
        assert said.data["problems"] == [] or path.stem == "forbidden", said.data["problems"]


# --- no effects --------------------------------------------------------------------------------------

JOB = """\
protocolVersion: 2
name: mnist
type: job
prerequisites:
  - {name: image, type: dockerimage, uri: "registry.invalid/x:1"}
taskRoles:
  worker:
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 1024, gpu: 0}
    commands: [train]
extras:
  storages: [{name: data}]
  com.microsoft.pai.runtimeplugin:
    - {plugin: git, parameters: {repo_uri: "https://git.invalid/x", clone_dir: /tmp/clone}}
    - {plugin: ssh, parameters: {jobssh: true, userssh: {type: custom, value: key}}}
    - {plugin: cmd, parameters: {preCommands: [touch pre], postCommands: [touch post]}}
    - {plugin: tensorboard, parameters: {port: 6006, logdir: {a: /a}}}
"""


def git_job(parameters: str) -> str:
    """The job above with one plugin, git."""
    plugin = "    - {plugin: git, parameters: {" + parameters + "}}\n"
    return f"{JOB.partition('  storages:')[0]}  com.microsoft.pai.runtimeplugin:\n{plugin}"


def test_a_jobs_commit_is_pinned_by_the_plugin(shell: Shell) -> None:
    """The plugin git takes the module's branch and commit as parameters."""
    more = 'repo_uri: "https://git.invalid/x", commit: 0a1b2c3, branch: main'
    data = shell("--dry-run", "--json", shell.file("job.yaml", git_job(more))).data
    values = next(t for t in data["roles"]["worker"]["init"] if t["id"] == "git")["args"]
    found = {n: values[n] for n in ("commit", "branch")}
    assert found == {"commit": "0a1b2c3", "branch": "main"}


def test_an_option_of_git_that_is_refused(shell: Shell) -> None:
    """The caret stands at the options, in the spec and in the job."""
    job = shell.file("job.yaml", git_job('repo_uri: "https://git.invalid/x", options: [--upload]'))
    said = shell("--dry-run", job)
    assert said.ids == ["PR605"]
    assert "'options': the option '--upload' of git clone is not allowed; allowed: " in said.err
    lines = said.err.split("\n")
    marks = [a[b.index("^") :] for a, b in pairwise(lines) if "^" in b]
    assert [m.split("}")[0] for m in marks] == ['"{{ parameters.options ', "[--upload]"]


def test_a_token_in_an_address_does_not_hide_the_tasks_name(shell: Shell) -> None:
    """The name tells of the repository, and nothing of the token."""
    uri = 'repo_uri: "https://reader:<% $secrets.token %>@git.invalid/x"'
    text = f"{git_job(uri)}secrets: {{token: s3cretTOKENxyz}}\n"
    said = shell("--dry-run", shell.file("job.yaml", text))
    assert "Clone git.invalid/x" in said.out
    assert "s3cretTOKENxyz" not in said.out + said.err


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("git.retrys", "did you mean 'git.retries'?"),
        ("git.repo", "did you mean 'git.args.repo'?"),
        ("git.args.dept", "did you mean 'git.args.depth'?"),
        ("git.stal", "did you mean 'git.args.stall'?"),
        ("git", "begin a path with an id and a keyword"),
        ("git_clone.retries", "did you mean 'git.retries'?"),
        ("shm", "did you mean 'pod.shm'?"),
    ],
)
def test_a_path_to_no_setting(shell: Shell, path: str, hint: str) -> None:
    """What leads to nothing gets the nearest path."""
    job = shell.file("job.yaml", git_job('repo_uri: "https://git.invalid/x"'))
    said = shell("--dry-run", "--why", path, job)
    assert f"no such setting: {path}" in said.err
    assert f"help: {hint}" in said.err
    default = shell("--dry-run", "--why", "git.args.stall", job)
    assert "1m  ← default of the module git_clone" in default.out


PATCHED = """\
  pairun:
    init: [{patch: git, retries: 1.5}]
    runtime: [{append: null, id: f, name: F, file: {path: /tmp/x, content: "{{ nope }}"}}]
"""


def test_one_mistake_is_one_error(shell: Shell) -> None:
    """A value that is wrong does not make what stands beside it wrong."""
    job = shell.file("job.yaml", git_job('repo_uri: "https://git.invalid/x"') + PATCHED)
    said = shell("--dry-run", job)
    assert said.ids == ["PR204", "PR301"]
    assert "is missing" not in said.out + said.err
    assert "its arguments are invalid" in said.out


def test_plan_is_the_same(shell: Shell) -> None:
    """`pairun plan JOB` and `pairun --dry-run JOB` say the same."""
    job = shell.job()
    assert shell("plan", "--full", job) == shell("--dry-run", "--full", job)
    assert (shell("plan").code, shell("plan").ids) == (2, ["PR801"])


def test_a_word_that_is_no_command(shell: Shell) -> None:
    """What is neither a command nor a file is named, with the nearest command."""
    said = shell.process("lnt", "x")
    assert said.code == 2
    assert "there is no command and no file 'lnt'; did you mean 'lint'?" in said.err
    assert "no file 'zzzz'; `pairun --help` lists" in shell.process("zzzz").err
    job = shell.job()
    assert f"no command given; did you mean `pairun plan {job}`?" in shell.process(job).err


def files_below(folder: Path) -> dict[str, tuple[int, int]]:
    """Every path with its inode and change."""
    paths = [folder, *folder.rglob("*")]
    return {str(p): (p.lstat().st_ino, p.lstat().st_mtime_ns) for p in paths}


def test_a_review_makes_no_file(shell: Shell) -> None:
    """Neither where it runs, nor in HOME, nor where temporary files go."""
    job = shell.file("job.yaml", JOB)
    folders = [shell.tmp / n for n in ("home", "temporary", "here")]
    for folder in folders:
        folder.mkdir()
    before = files_below(shell.tmp)
    env = {"HOME": str(folders[0]), "TMPDIR": str(folders[1]), "XDG_CACHE_HOME": str(folders[0])}
    for flags in ([], ["--json"], ["--why", "git.args.depth"]):
        shell.process("--dry-run", *flags, job, env=env, cwd=folders[2])
    assert files_below(shell.tmp) == before


_READ_ONLY = """\
set -e
awk '{ print $5 }' /proc/self/mountinfo | while read -r m; do
    mount -o remount,ro,bind "$m" 2>/dev/null || mount -o bind,ro "$m" "$m" 2>/dev/null || true
done
if (: > "$1/written") 2>/dev/null; then exit 99; fi
shift
exec "$@"
"""


@pytest.mark.slow
def test_a_review_needs_no_network_and_nothing_writable(shell: Shell) -> None:
    """Without a network and with every mount read-only, the output is the same to the byte."""
    isolated: tuple[str, ...] = ("unshare", "--net", "--mount", "--propagation", "private")
    if os.geteuid() != 0:
        isolated = ("unshare", "--map-root-user", *isolated[1:])
    allowed = shutil.which("unshare") and not subprocess.run([*isolated, "true"], capture_output=True).returncode  # fmt: skip
    if not allowed and "CI" not in os.environ:
        pytest.skip("unshare is not permitted here")
    job = shell.file("job.yaml", JOB)
    before = (*isolated, "sh", "-c", _READ_ONLY, "sh", str(shell.tmp))
    for flags in ([], ["--json"]):
        outside = shell.process("--dry-run", *flags, job)
        inside = shell.process("--dry-run", *flags, job, before=before)
        assert inside.code != 99, "the mounts are still writable"
        assert inside == outside
        assert inside.code == 0


def test_a_review_looks_at_nothing_of_this_machine(shell: Shell) -> None:
    """What stands on this machine changes no word: the review is of an empty Pod."""
    runtime = """\
phase: runtime
tasks:
  - {name: F, file: {path: /etc/hostname, content: x}}
  - {name: G, cmd: {argv: [a], creates: /etc/hostname}}
  - {name: H, id: h, cmd: {argv: [a], unless: "true"}}
"""
    root = shell.root({"playbooks/runtime.yaml": runtime})
    tasks: list[Any] = shell("--dry-run", "--json", shell.job(), "--root", root).data["roles"][
        "worker"
    ]["runtime"]
    assert {t["verdict"] for t in tasks} == {"unknown"}
    assert all("depends on" in t["because"] for t in tasks)


def test_the_same_job_has_the_same_review(shell: Shell) -> None:
    """Two runs differ in no byte: no clock, no order of a set, no random number."""
    job = shell.file("job.yaml", JOB)
    runs = [
        shell.process("--dry-run", "--json", job, env={"PYTHONHASHSEED": seed}) for seed in "12"
    ]
    assert runs[0] == runs[1]


def test_a_later_role_is_shown_by_what_differs(shell: Shell) -> None:
    """A phase that is the same as in an earlier role is said to be so, once."""
    job = shell.file(
        "two.yaml",
        """\
protocolVersion: 2
name: two
type: job
prerequisites: [{name: i, type: dockerimage, uri: u}]
taskRoles:
  a: {dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}, commands: [one]}
  b: {dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}, commands: [two]}
""",
    )
    out = shell("--dry-run", "--full", job).out
    assert out.count("The variables of the job are written") == 1
    assert "init: as in role a" in out
    assert "script: two" in out


def test_ssh_in_the_review(shell: Shell) -> None:
    """What ssh needs is known to the run alone; keys are in no review."""
    job = shell.file(
        "ssh.yaml",
        """\
protocolVersion: 2
name: ssh
type: job
prerequisites: [{name: i, type: dockerimage, uri: u}]
taskRoles:
  a: {dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}, commands: [one]}
extras:
  com.microsoft.pai.runtimeplugin:
    - {plugin: ssh, parameters: {jobssh: true, sshbarrier: "true"}}
""",
    )
    done = shell("--dry-run", "--full", job)
    assert done.code == 0, done.err
    assert "sshd accepts the keys of the job and of its author" in done.out
    assert "Every instance of the job responds by ssh" in done.out


def test_the_version_knows_the_roots(shell: Shell) -> None:
    """The digest of a content root that is named stands beside the built-in one's."""
    root = shell.root({"playbooks/policy.yaml": shell.all_open})
    out = shell("--root", root, "--version").out
    review = " ".join(shell("--dry-run", "--root", root, shell.job()).out.split())
    digest = review.split(f"cluster {root} ")[1][:12]
    assert f"cluster playbooks {digest} ({root})" in out


# --- mistakes that people make -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "error", "hint"),
    [
        ("", "error[PR501]: the file is empty", ""),
        ("services:\n  web: {image: x}\n", "this is not a job: it looks like a file of Docker Compose", "docs/jobs.md"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_job_has_one_error(
    shell: Shell, text: str, error: str, hint: str
) -> None:
    """What follows from the file being something else is not told beside it."""
    said = shell("--dry-run", shell.file("other.yaml", text))
    assert said.code == 1
    assert error in said.err
    assert hint in said.err
    assert said.err.endswith("1 error\n")


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("commands: ls -l", 'commands are a list: ["ls -l"]'),
        ("commands: [echo result: done]", 'quote the command: "echo result: done"'),
    ],
)
def test_commands_that_yaml_reads_otherwise(shell: Shell, written: str, hint: str) -> None:
    """The hint is the command as it is to be written."""
    text = shell.job_text.replace("commands: [train]", written)
    assert written in text
    said = shell("--dry-run", shell.file("job.yaml", text))
    assert said.code == 1
    assert hint in said.err


def test_a_refused_setting_of_pods_is_marked(shell: Shell) -> None:
    """It is not shown as set: not in text, not in JSON, and a comparison leaves it out."""
    policy = "job_may: {}\npod: {set: [shm, queue], max: {shm: 1Gi}}\n"
    root = shell.root({"playbooks/policy.yaml": policy})
    job = shell.job("pod: {shm: 64Gi, queue: a, metadata: {labels: {a: b}}}")
    said = shell.process("--dry-run", "--root", root, job, env={"COLUMNS": "200"})
    settings = "".join(said.out.split()).split("pod.")[1:4]
    marks = {each.partition("=")[0]: ",refused" in each for each in settings}
    assert marks == {"queue": False, "metadata.labels.a": True, "shm": True}
    pod = shell.process("--dry-run", "--json", "--root", root, job).data["roles"]["worker"]["pod"]
    assert {key: setting.get("refused") for key, setting in pod.items()} == {
        "shm": True,
        "queue": None,
        "metadata.labels.a": True,
    }
    diff = shell.process("diff", "built-in", root, job, env={"COLUMNS": "200"}).out
    assert 'pod.shm: "64Gi" → (none)' in diff


def test_a_path_that_the_container_knows(shell: Shell) -> None:
    """The short form and the full one show it as written."""
    plugin = "{plugin: git, parameters: {repo_uri: 'https://a/b', clone_dir: $HOME/code}}"
    job = shell.job(more=f"extras: {{com.microsoft.pai.runtimeplugin: [{plugin}]}}\n")
    assert "$HOME/code: known in the container" in shell("--dry-run", job).out
    full = shell("--dry-run", "--full", job).out
    assert "environment.CLONE_DIR: $HOME/code (known in the container)" in full

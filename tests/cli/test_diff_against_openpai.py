"""``pairun diff --against-openpai``: what OpenPAI's own runtime does with a job, beside pairun."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Shell

JOB = """\
protocolVersion: 2
name: mnist
type: job
secrets: {word: open-sesame&more}
prerequisites:
  - {name: image, type: dockerimage, uri: "ubuntu:22.04"}
taskRoles:
  Worker:
    instances: 2
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 1024, gpu: 0}
    commands: ["login <% $secrets.word %>"]
extras:
  com.microsoft.pai.runtimeplugin:
    - {plugin: cmd, parameters: {preCommands: [a], postCommands: [b]}}
    - {plugin: cmd, parameters: {postCommands: [c]}}
"""


@pytest.fixture
def job(shell: Shell) -> str:
    """A job that the original does not survive."""
    return str(shell.file("job.yaml", JOB))


def test_both_sides(shell: Shell, job: str) -> None:
    """Steps and scripts beside tasks, and each case with its line and both behaviours."""
    said = shell("diff", "--against-openpai", job)
    assert said.code == 0, said.err
    lines = [" ".join(line.split()) for line in said.out.splitlines()]
    assert lines[0] == f"job mnist of user · {job} · OpenPAI's runtime and pairun"
    for line in (
        "OpenPAI's init ends with 1: role-name",
        "ENV_GENERATOR job_environment",
        "plugin_pre0.sh of cmd cmd",
        "user.sh user_command",
        "plugin_post0.sh of cmd cmd.on_exit",
        "plugin_post1.sh of cmd cmd_2.on_exit",
        f"role-name {job}:8:3 the role 'Worker' is 'worker' in the Pods",
        f"secret-escaping {job}:4:11 the secret 'word'",
        "OpenPAI: HTML-escaped: a wrong password",
        "pairun: inserted as it is",
    ):
        assert line in lines, said.out
    assert lines.index("plugin_post1.sh of cmd cmd_2.on_exit") < lines.index(
        "plugin_post0.sh of cmd cmd.on_exit"
    )
    assert "exit codes: any failure 254 → permanent 254" in said.out
    assert "more here: PAI_PORT_LIST_Worker_0" in said.out
    assert "open-sesame" not in said.out + said.err


def test_data(shell: Shell, job: str) -> None:
    """The same for programs."""
    said = shell("diff", "--against-openpai", "--json", "--exit-code", job)
    assert said.code == 2
    role = said.data["jobs"][job]["roles"]["Worker"]
    assert role["openpai_init_ends_with"] == 1
    assert [c["id"] for c in role["cases"]] == ["role-name", "raw-names", "secret-escaping"]
    (barrier,) = [t for t in role["tasks"] if t["pairun"] == ["barrier"]]
    assert barrier["openpai"] == "FRAMEWORK_BARRIER"
    assert barrier["exit_codes"]["pairun"] == "timeout 251, permanent 252, else 1"
    assert "PAI_CURRENT_TASK_ROLE_NAME" in role["environment"]["both"]


def test_a_clusters_own_root(shell: Shell, job: str) -> None:
    """Its tasks stand where the original has none, and its plugin folders where a program decides."""
    text = JOB + "    - {plugin: hello}\n"
    playbook = "phase: init\npatches: [{append: null, id: own, name: Own, cmd: {argv: [a]}}]\n"
    root = shell.root(
        {
            "playbooks/init.yaml": playbook,
            "plugins/hello/desc.yaml": "init-script: init.py\n",
            "plugins/hello/init.py": "",
        }
    )
    said = shell("diff", "--against-openpai", "--root", root, shell.file("other.yaml", text))
    lines = [" ".join(line.split()) for line in said.out.splitlines()]
    assert "- own (exit codes: - → 1)" in lines, said.out
    assert "PLUGIN_INITIALIZER hello" in lines
    assert "plugin_pre2.sh of hello (if its program writes it) hello_2" in lines


def test_one_role(shell: Shell, job: str) -> None:
    """--role chooses, by either name."""
    assert shell("diff", "--against-openpai", "--role", "worker", job).code == 0
    said = shell("diff", "--against-openpai", "--role", "absent", job)
    assert said.code == 1
    assert "PR509" in said.ids


def test_a_job_that_is_not_valid(shell: Shell) -> None:
    """Its errors, and exit code 1."""
    said = shell("diff", "--against-openpai", shell.file("bad.yaml", JOB.replace("type: job", "")))
    assert said.code == 1
    assert "type" in said.err


@pytest.mark.parametrize(
    "args", [["--against-openpai"], ["--root", ".", "built-in", "built-in", "job.yaml"]]
)
def test_wrong_usage(shell: Shell, args: list[str]) -> None:
    """Without a job there is nothing to compare; --root belongs to this form alone."""
    said = shell("diff", *args)
    assert (said.code, said.ids) == (2, ["PR801"])


def test_options_stand_anywhere(shell: Shell, job: str) -> None:
    """Before, between and after the jobs."""
    other = str(shell.file("other.yaml", JOB))
    for args in (
        ["--against-openpai", "--json", job, other],
        ["--json", "--against-openpai", job, other],
        ["--against-openpai", job, "--json", other],
        ["--against-openpai", job, other, "--json"],
    ):
        assert list(shell("diff", *args).data["jobs"]) == [job, other]

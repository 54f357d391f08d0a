"""Plugin folders in OpenPAI's form in whole jobs: one for each thing that OpenPAI's plugins do."""

from __future__ import annotations

import pathlib
import subprocess
from typing import Any

import pytest

# Whole jobs, phase by phase: `make test` leaves them to `make test-slow`.
pytestmark = pytest.mark.slow

ROOT = str(pathlib.Path(__file__).parent / "plugin_folders")


def use(job: Any, plugin: str, policy: str = "fail", **parameters: Any) -> None:
    """Let the job use a plugin."""
    extras = job.document.setdefault("extras", {})
    listed = extras.setdefault("com.microsoft.pai.runtimeplugin", [])
    listed.append({"plugin": plugin, "parameters": parameters, "failurePolicy": policy})


def test_commands_run_in_order_of_collection_and_back(job: Any, start: Any) -> None:
    """Pre scripts run in the job's order, post scripts in reverse, and secrets are masked."""
    job.document["secrets"] = {"word": "open-sesame"}
    job.role("w", "echo the command")
    use(job, "shell", preCommands=["echo first <% $secrets.word %>"], postCommands=["echo last"])
    use(job, "shell", preCommands=["echo second"], postCommands=["echo before last"])
    run = start("--root", ROOT)
    assert run.end() == 0, run.text
    said = [line.partition(" | ")[2] or line for line in run.said("w-0")]
    words = ["first ******", "second", "the command", "before last", "last"]
    assert [line for line in said if line in words] == words
    assert "open-sesame" not in run.text
    scripts = sorted((run.folder / "w-0/pai/runtime.d").glob("plugin_*.sh"))
    assert [s.name for s in scripts] == [f"plugin_{k}{n}.sh" for k in ("post", "pre") for n in "01"]
    assert {s.stat().st_mode & 0o777 for s in scripts} == {0o600}


def test_post_scripts_run_after_success_only(job: Any, start: Any) -> None:
    """As OpenPAI's do: not when the command failed."""
    job.role("w", "exit 3")
    use(job, "shell", postCommands=["echo post script"])
    run = start("--root", ROOT)
    assert run.end() != 0
    assert "post script" not in run.text


@pytest.mark.parametrize(("policy", "code"), [("fail", 1), ("ignore", 0)])
def test_a_script_that_fails(job: Any, launch: Any, policy: str, code: int) -> None:
    """Its first failure ends the script and the job, unless the job ignores failures."""
    job.role("w", "echo the command")
    use(job, "shell", policy, preCommands=["false", "echo went on"])
    run = launch("--root", ROOT)
    assert bool(run.end()) == bool(code), run.text
    assert ("went on" in run.text) == (policy == "ignore")
    assert ("| the command" in run.text) == (policy == "ignore")


def test_a_plugin_without_scripts(job: Any, start: Any) -> None:
    """A program that writes none brings no task of the runtime phase."""
    job.role("w", "echo the command")
    use(job, "team_storage", storageConfigNames=["team"])
    run = start("--root", ROOT)
    assert run.end() == 0, run.text
    assert "no storage is mounted for team_storage" in run.text
    assert "team_storage_2" not in run.text


def test_code_that_is_cloned_in_init(job: Any, launch: Any, tmp_path: pathlib.Path) -> None:
    """The program finds the volume beside its own path, and its script moves the code."""
    git = ["git", "-C", str(tmp_path / "repo"), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "init", "-q", str(tmp_path / "repo")], check=True)
    (tmp_path / "repo/train.py").write_text("print('trained')\n")
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "code"], check=True)
    target = tmp_path / "work"
    job.role("w", f"cat {target}/train.py")
    use(job, "checkout", repo_uri=str(tmp_path / "repo"), clone_dir=str(target))
    run = launch("--root", ROOT)
    assert run.end() == 0, run.text
    assert "print('trained')" in run.said("w-0")


def test_a_program_that_fails_in_init(job: Any, launch: Any, tmp_path: pathlib.Path) -> None:
    """The command does not start, and the line says which program of which plugin it was."""
    job.role("w", "echo the command")
    use(job, "checkout", repo_uri=str(tmp_path / "absent"))
    run = launch("--root", ROOT)
    assert run.end() != 0
    assert "init.py of the plugin checkout ended with exit code 1" in run.text
    assert "| the command" not in run.text


def test_scripts_call_programs_of_the_folder(job: Any, start: Any) -> None:
    """The folder is on the volume with its modes, and parameters of several lines stay whole."""
    job.role("w", "cat /usr/local/pai/run/authorized_keys")
    use(job, "keys", userssh={"type": "custom", "value": "ssh-ed25519 AAAA\nssh-ed25519 BBBB"})
    run = start("--root", ROOT)
    assert run.end() == 0, run.text
    assert [w for w in ("update", "install", "2 keys") if w not in run.text] == []
    assert run.said("w-0").count("ssh-ed25519 BBBB") == 1


def test_a_program_that_renders_a_script(job: Any, start: Any) -> None:
    """It writes beside itself, and decides by the instance that it is."""
    for role in ("first", "second"):
        job.role(role, "true", completion={"minSucceededInstances": -1})
    use(job, "board", port=12345)
    run = start("--root", ROOT)
    assert run.end() == 0, run.text
    assert run.text.count("the board listens on 12345") == 1


def test_a_review_runs_no_program(job: Any, tmp_path: pathlib.Path) -> None:
    """`--dry-run` shows that a program decides, and shows it without running it."""
    folder = tmp_path / "root/plugins/trap"
    folder.mkdir(parents=True)
    (folder / "desc.yaml").write_text("name: trap\ninit-script: init.py\n")
    (folder / "init.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    job.role("w", "true")
    use(job, "trap")
    argv = ["python", "-m", "pairun", "--dry-run", "--root", str(tmp_path / "root")]
    done = subprocess.run([*argv, str(job.save())], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (
        "? trap               The plugin trap: a program decides, known after init" in done.stdout
    )
    assert "depends on what a program decides in init" in done.stdout
    assert not (tmp_path / "ran").exists()


SPEC = """\
- containerExitCode: 137
  patterns: [{exitCode: 137}]
"""


@pytest.mark.parametrize(
    ("parameters", "code"),
    [
        ({"preCommands": ["exit 137"]}, 137),
        ({"postCommands": ["kill -9 $$"]}, 137),
        ({"preCommands": ["exit 7"]}, 255),
    ],
)
def test_the_exit_code_of_a_script(
    job: Any, launch: Any, tmp_path: pathlib.Path, parameters: Any, code: int
) -> None:
    """The cluster's exit spec decides, as for every plugin's script."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config/runtime-exit-spec.yaml").write_text(SPEC)
    job.role("w", "echo the command")
    use(job, "shell", **parameters)
    run = launch("--root", ROOT, PAI_CONFIG_DIR=str(tmp_path / "config"))
    assert run.end() != 0
    assert f"w-0 ended with {code}" in run.text, run.text

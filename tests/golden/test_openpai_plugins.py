"""What the plugins of a job do in both phases, as OpenPAI's own runtime did it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import SHARED
from tests.doors import DoorWatch

# Whole jobs, phase by phase: `make test` leaves them to `make test-slow`.
pytestmark = pytest.mark.slow

GOLDEN = SHARED / "openpai" / "golden"
ROOT = Path(__file__).parents[2]


class Pod:
    """A Pod of OpenPAI whose containers are processes on this machine."""

    def __init__(self, folder: Path) -> None:
        self.volume = folder / "pai"
        self.config = folder / "config"
        self.config.mkdir()
        self.logs = self.volume / "logs" / "a-uid"
        self.message = folder / "termination-log"
        self._watch = DoorWatch(self.volume, folder / "door-watch")
        self.env = {
            **self._watch.env,
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "PAIRUN_PAI_DIR": str(self.volume),
            "PAI_CONFIG_DIR": str(self.config),
            "PAIRUN_HOST_IP": "10.0.0.9",
            "PAIRUN_TERMINATION_LOG": str(self.message),
            "FC_POD_UID": "a-uid",
        }

    def container(self, command: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run the command of one container."""
        done = subprocess.run(
            [sys.executable, "-m", "pairun", command],
            capture_output=True,
            text=True,
            errors="replace",
            cwd=ROOT,
            env={**self.env, **env},
            timeout=60,
            check=False,
        )
        assert "Traceback" not in done.stderr
        assert not self._watch.violations()
        return done

    def run(self, *plugins: dict[str, Any], command: str = "true", **env: str) -> int:
        """Run both phases of a job with these plugins; the exit code of the user's container."""
        settings = {"commands": [command], "runtimePlugin": list(plugins)}
        env = {"RUNTIME_CONFIG": yaml.safe_dump(settings), **env}
        init = self.container("init", **env)
        assert init.returncode == 0, init.stdout + init.stderr
        self.app = self.container("runtime", **env)
        return self.app.returncode

    @property
    def reported(self) -> dict[str, Any]:
        """The termination message, taken apart as OpenPAI's REST server does."""
        pattern = r"\[PAI_RUNTIME_ERROR_START\]([\s\S]*)\[PAI_RUNTIME_ERROR_END\]"
        body = re.search(pattern, self.message.read_text())
        assert body is not None
        parsed: dict[str, Any] = yaml.safe_load(body[1])
        return parsed


@pytest.fixture
def pod(tmp_path: Path) -> Pod:
    """A Pod without an exit spec."""
    return Pod(tmp_path)


@pytest.fixture
def openpai_pod(pod: Pod) -> Pod:
    """A Pod with the exit spec that OpenPAI deploys."""
    spec = GOLDEN / "runtime-exit-spec.pai.yaml"
    (pod.config / "runtime-exit-spec.yaml").write_text(spec.read_text())
    return pod


def cmd(before: str = "", after: str = "", **more: Any) -> dict[str, Any]:
    """An entry of the plugin `cmd`."""
    commands = {"preCommands": [before] if before else [], "postCommands": [after] if after else []}
    return {"plugin": "cmd", "parameters": commands, **more}


SSH_BARRIER = "echo SSH barrier reaches max retry count; exit 10"


@pytest.mark.shared
@pytest.mark.parametrize(
    ("plugin", "script_code", "code"),
    [
        (cmd(before="exit 137"), 137, 137),
        (cmd(after="kill -15 $$"), 143, 143),
        (cmd(before=SSH_BARRIER), 10, 249),
        (cmd(before="exit 7"), 7, 255),
        (cmd(after="exit 7"), 7, 255),
        (cmd(before="exit 3", failurePolicy="ignore"), 3, 0),
    ],
    ids=lambda p: str(p.get("parameters", p)) if isinstance(p, dict) else str(p),
)
def test_the_exit_spec_sees_the_code_of_a_plugins_script(
    openpai_pod: Pod, plugin: dict[str, Any], script_code: int, code: int
) -> None:
    """A script's exit code gets its entry of the exit spec, and is reported as the user's."""
    assert openpai_pod.run(plugin) == code
    if code:
        assert openpai_pod.reported["originUserExitCode"] == script_code
        assert openpai_pod.reported["exitCode"] == code


def test_without_an_exit_spec_a_plugins_failure_is_255(pod: Pod) -> None:
    """The container's code stays 255, and the script's own code is reported beside it."""
    assert pod.run(cmd(before="exit 7")) == 255
    assert pod.reported["originUserExitCode"] == 7


def stamped(text: str) -> re.Pattern[str]:
    """A line of ``runtime.log`` with this text, as OpenPAI's runtime writes its date and name."""
    date = r"\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [A-Z+\d-]+ \d{4}\]"
    return re.compile(rf"^{date} \[openpai-runtime\] .*{text}$", re.MULTILINE)


@pytest.mark.parametrize(("plugin", "code"), [(cmd(before="exit 1"), 255), (cmd(), 0)])
def test_the_log_folders_are_made_first(pod: Pod, plugin: dict[str, Any], code: int) -> None:
    """The log manager finds the user's logs also where a plugin failed before the command."""
    assert pod.run(plugin) == code
    for name in ("user-all", "user-stdout", "user-stderr"):
        assert (pod.logs / name / "current").is_file()


def test_lines_of_plugins_are_stamped_and_go_to_standard_error(pod: Pod) -> None:
    """Both streams of a script stand in the log with date and name, and on standard error."""
    scripts = cmd(before="echo to-out; echo to-err >&2", after="echo later")
    assert pod.run(scripts, command="echo of-the-command") == 0
    log = (pod.logs / "runtime.log").read_text()
    assert all(line.startswith("[") for line in log.splitlines())
    for text in ("to-out", "to-err", "later"):
        assert stamped(text).search(log)
        assert text in pod.app.stderr
        assert text not in pod.app.stdout
    assert pod.app.stdout == "of-the-command\n"


def test_the_runtimes_log_pipe(pod: Pod) -> None:
    """What scripts and the command write to $RUNTIME_LOG_PIPE is in the log, and no one waits."""
    write = "echo from-{} > $RUNTIME_LOG_PIPE"
    scripts = cmd(before=write.format("before"), after=write.format("after"))
    assert pod.run(scripts, command=f"test -p $RUNTIME_LOG_PIPE; {write.format('command')}") == 0
    log = (pod.logs / "runtime.log").read_text()
    for name in ("before", "command", "after"):
        assert stamped(f"from-{name}").search(log)
        assert f"from-{name}" in pod.app.stderr


def test_skipped_tasks_take_no_room_in_the_message(pod: Pod, tmp_path: Path) -> None:
    """The few lines of the platform's log in the message are those that tell something."""
    late = {"plugin": "late", "parameters": {}}
    root = tmp_path / "root" / "plugin_specs"
    root.mkdir(parents=True)
    (root / "late.yaml").write_text(
        "summary: Skipped at run time\n"
        "runtime: [{name: Not today, when: env.NEVER | default('') == 'x', cmd: {argv: ['true']}}]\n"
    )
    failing = cmd(before="echo a-reason; exit 1")
    assert pod.run(late, failing, PAIRUN_PATH=str(root.parent)) == 255
    assert "skipped" in (pod.logs / "runtime.log").read_text()
    platform = pod.reported["errorLogs"]["platform"]
    assert "a-reason" in platform
    assert "skipped" not in platform
    assert "its condition is false" not in platform


def test_a_script_knows_its_name_and_its_failure_has_no_kind(pod: Pod) -> None:
    """``$0`` is the script's name, and a plain ``exit 1`` is not called transient."""
    assert pod.run(cmd(before='echo "I am $0"; exit 1')) == 255
    log = (pod.logs / "runtime.log").read_text()
    assert "I am cmd_pre.sh" in log
    assert "the script ended with exit code 1 [no retries; fault: user]" in log


def repository(path: Path) -> Path:
    """A git repository with one commit."""
    subprocess.run(["git", "init", "-q", str(path)], check=True)
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    commit = ["commit", "-q", "--allow-empty", "-m", "first"]
    subprocess.run(["git", "-C", str(path), *identity, *commit], check=True)
    return path


def test_paths_of_plugins_are_shell_words(pod: Pod, tmp_path: Path) -> None:
    """The parameters that OpenPAI's scripts put into a shell are expanded in the user's container."""
    repo = repository(tmp_path / "repo")
    homes = [tmp_path / name for name in ("home", "a home")]
    for home, written in zip(homes, ("$HOME/${SUB}x", "~/deep/$SUB"), strict=True):
        git = {"plugin": "git", "parameters": {"repo_uri": f"file://{repo}", "clone_dir": written}}
        assert pod.run(git, HOME=str(home), SUB="sub") == 0, pod.app.stderr
    assert (homes[0] / "subx" / ".git").is_dir()
    assert (homes[1] / "deep" / "sub" / ".git").is_dir()


def test_only_those_paths_are_shell_words(pod: Pod, tmp_path: Path) -> None:
    """A command in a path is text, and so are parameters that no shell read."""
    repo = repository(tmp_path / "$HOME repo")
    target = tmp_path / "$(touch oops) `touch oops` * \\x"
    git = {"plugin": "git", "parameters": {"repo_uri": f"file://{repo}", "clone_dir": str(target)}}
    assert pod.run(git) == 0, pod.app.stderr
    assert (target / ".git").is_dir()
    assert not list(tmp_path.rglob("oops"))


def test_background_children_hold_nothing(pod: Pod) -> None:
    """What a plugin or the command leaves in the background keeps no job running, as in the fork."""
    left = "sleep 600 & echo left-by-{}"
    plugin = cmd(before=left.format("before"), after=left.format("after"))
    assert pod.run(plugin, command=left.format("command")) == 0
    log = (pod.logs / "runtime.log").read_text()
    assert "left-by-before" in log
    assert "left-by-after" in log
    assert (pod.logs / "user-all" / "current").read_text() == "left-by-command\n"


def pip(folder: Path, then: str) -> str:
    """A PATH with a pip that takes what the plugin asks of it, and then does this."""
    folder.mkdir()
    check = '[ "$1" = install ] && [ "${@: -1}" = tensorboard ] || exit 9'
    (folder / "pip").write_text(f"#!/bin/bash\n{check}\n{then}\n")
    (folder / "pip").chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


TENSORBOARD = {"plugin": "tensorboard", "parameters": {"port": "$TB_PORT", "logdir": {"a": "~/tb"}}}


def test_tensorboard_is_installed(pod: Pod, tmp_path: Path) -> None:
    """An image without it gets it from pip before the command starts, and its words are expanded."""
    served = tmp_path / "served"
    program = tmp_path / "bin" / "tensorboard"
    fake = f'[ "$1" = --version_tb ] && echo 2.11.0 || echo "$@" > {served}'
    install = f"printf '#!/bin/sh\\n%s\\n' '{fake}' > {program}; chmod +x {program}"
    path = pip(tmp_path / "bin", install)
    wait = f"until [ -s {served} ]; do sleep 0.05; done"
    assert pod.run(TENSORBOARD, command=wait, PATH=path, TB_PORT="6007") == 0, pod.app.stderr
    assert served.read_text() == f"--logdir={tmp_path}/tb --bind_all --port=6007\n"


def test_tensorboard_that_cannot_be_installed_is_a_warning(pod: Pod, tmp_path: Path) -> None:
    """Where the index is not reached the task says so, and the job goes on."""
    path = pip(tmp_path / "bin", "echo no route to the index >&2; exit 1")
    assert pod.run(TENSORBOARD, command="echo went on", PATH=path, TB_PORT="6007") == 0
    assert pod.app.stdout == "went on\n"
    log = (pod.logs / "runtime.log").read_text()
    assert "no route to the index" in log
    assert "tensorboard could not be installed; TensorBoard is not started" in log
    assert "ignored  tensorboard:" in log

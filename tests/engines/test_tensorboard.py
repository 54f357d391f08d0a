"""The plugin tensorboard in whole jobs, with programs that play its versions."""

from __future__ import annotations

import json
import pathlib
import shlex
from typing import Any

import pytest

# Whole jobs, phase by phase: `make test` leaves them to `make test-slow`.
pytestmark = pytest.mark.slow

# It prints its arguments and what it reads, and serves until it is told to end.
FAKE = """#!/bin/sh
if [ "$1" = --version_tb ]; then echo a warning >&2; echo {version}; exit {code}; fi
for word in "$@"; do echo "$word"; done
trap 'echo ended; exit' TERM
read -r line && echo "read $line"
: >"{serves}"
while :; do sleep 0.05; done
"""


class Trial:
    """A job with the plugin."""

    def __init__(self, job: Any, folder: pathlib.Path) -> None:
        self.job = job
        self.folder = folder
        self.serves = folder / "serves"

    def image(self, version: str, code: int = 0) -> pathlib.Path:
        """Put the program there."""
        (self.folder / "bin").mkdir()
        program = self.folder / "bin" / "tensorboard"
        program.write_text(FAKE.format(version=version, code=code, serves=self.serves))
        program.chmod(0o755)
        return program

    def roles(self, command: str) -> None:
        """Two roles; the first has two instances."""
        command = command.replace("SERVES", str(self.serves))
        path = f"export PATH={shlex.quote(str(self.folder / 'bin'))}:$PATH"
        for name, instances in (("first", 2), ("second", 1)):
            done = {"minSucceededInstances": -1}
            self.job.role(name, command, instances=instances, completion=done)
        # The image's PATH, for the tasks too.
        callbacks = [{"event": "containerStart", "commands": [path]}]
        self.job.document["extras"] = {
            "com.microsoft.pai.runtimeplugin": [
                {"plugin": "cmd", "parameters": {"callbacks": callbacks}},
            ]
        }

    def plugin(self, **parameters: Any) -> None:
        """Use the plugin."""
        use = {"plugin": "tensorboard", "parameters": parameters}
        self.job.document["extras"]["com.microsoft.pai.runtimeplugin"].append(use)


@pytest.fixture
def trial(job: Any, tmp_path: pathlib.Path) -> Trial:
    """A job with the plugin."""
    return Trial(job, tmp_path)


# Until it serves, in the one instance that has it.
WAIT = """\
echo seen $PAI_CURRENT_TASK_ROLE_NAME $PAI_TASK_INDEX
if [ $PAI_CURRENT_TASK_ROLE_NAME$PAI_TASK_INDEX = first0 ]; then
  n=0; while [ ! -e "SERVES" ] && [ $n -lt 600 ]; do sleep 0.05; n=$((n+1)); done
fi
"""


@pytest.mark.parametrize(
    ("version", "code", "logdir", "said"),
    [
        ("2.11.0", 0, {"path": "/events/{}"}, ["--logdir=/events/{}", "--bind_all"]),
        ("2.11.0", 0, {"a": "/a", "b": "/events/{}"}, ["--logdir_spec=a:/a,b:/events/{}", "--bind_all"]),
        ("1.15.0", 0, {"a": "/a", "b": "/events/{}"}, ["--logdir=a:/a,b:/events/{}"]),
        ("broken", 1, {"path": "/events/{}"}, ["--logdir=/events/{}", "--bind_all"]),
    ],
    ids=["2", "2, several", "1", "no version"],
)  # fmt: skip
def test_it_serves_beside_the_command(
    trial: Trial, launch: Any, version: str, code: int, logdir: dict[str, str], said: list[str]
) -> None:
    """In the first instance of the first role alone, with its version's flags, and ends with the job."""
    trial.roles(WAIT)
    mark = trial.job.mark
    trial.plugin(port=6006, logdir={n: p.format(mark) for n, p in logdir.items()})
    trial.image(version, code)
    run = launch("--no-namespace")
    assert run.end() == 0, run.text
    for instance in ("first-0", "first-1", "second-0"):
        log = run.folder / instance / "pai" / "run" / "tensorboard.log"
        assert log.exists() == (instance == "first-0")
    log = run.folder / "first-0" / "pai" / "run" / "tensorboard.log"
    words = [*(word.format(mark) for word in said), "--port=6006"]
    # What else is there is the shell's, on the end of its sleep.
    lines = [line for line in log.read_text().splitlines() if "Terminated" not in line]
    assert lines == ["a warning", *words, "ended"]
    assert any("TensorBoard starts on port 6006" in line for line in run.said("first-0"))
    assert any(line.startswith("ok       tensorboard") for line in run.said("first-1"))
    assert trial.job.running() == []


def test_a_machine_without_it(trial: Trial, start: Any) -> None:
    """On a person's machine nothing is installed: the task says so, and the job goes on."""
    trial.roles("echo done $PAI_TASK_INDEX")
    trial.plugin(port="6006")
    run = start()
    assert run.end() == 0
    lines = run.said("first-0")
    assert any("this machine has no tensorboard" in line for line in lines)
    assert any(line.startswith("ignored  tensorboard:") for line in lines)
    assert "done 0" in lines
    assert not any("no tensorboard" in line for line in run.said("second-0"))


def test_one_that_ends_at_once(trial: Trial, launch: Any) -> None:
    """A tensorboard that is broken fails nothing; its log has its words."""
    trial.roles(WAIT)
    trial.plugin(port=6006)
    broken = f"#!/bin/sh\necho it is broken >&2\n: >'{trial.serves}'\nexit 1\n"
    trial.image("2.0.0").write_text(broken)
    run = launch("--no-namespace")
    assert run.end() == 0, run.text
    log = run.folder / "first-0" / "pai" / "run" / "tensorboard.log"
    assert log.read_text().startswith("it is broken\n")


@pytest.mark.parametrize(
    "parameters",
    [
        {"port": 0}, {"port": 65536}, {"port": "65536"}, {"port": "80 --host=x"}, {"port": ""},
        {"port": "0080"}, {"port": 6006, "logdir": {}}, {"port": 6006, "logdir": {"a": ""}},
        {"port": 6006, "logdir": {"a": 1}},
    ],
    ids=json.dumps,
)  # fmt: skip
def test_wrong_parameters(trial: Trial, launch: Any, parameters: dict[str, Any]) -> None:
    """A port that is none, or no log directory, is said before anything starts."""
    trial.roles("true")
    trial.plugin(**parameters)
    run = launch()
    assert run.end() == 1
    assert "error[PR51" in run.text
    assert "plugin tensorboard" in run.text or "tensorboard" in run.text


def test_a_phase_that_runs_again_starts_no_second_one(trial: Trial, launch: Any) -> None:
    """The task knows the process that it has started."""
    trial.roles(WAIT)
    trial.plugin(port=6006, logdir={"path": f"/events/{trial.job.mark}"})
    use = trial.job.document["extras"]["com.microsoft.pai.runtimeplugin"][-1]
    trial.job.document["extras"]["com.microsoft.pai.runtimeplugin"].append(dict(use))
    trial.image("2.1.0")
    run = launch("--no-namespace")
    assert run.end() == 0, run.text
    assert sum("TensorBoard starts" in line for line in run.said("first-0")) == 1

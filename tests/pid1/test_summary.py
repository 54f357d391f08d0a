"""The exit summary: the container's code and the termination message, whatever goes wrong."""

from __future__ import annotations

import json
import pathlib
import re
import signal
from typing import Any

import pytest
import yaml

from pairun.errors import Problems, Source
from pairun.openpai.exitspec import read_exit_spec

SPEC = """
- containerExitCode: 128
  patterns: [{gpuInfo: {nvidiaDoubleEccError: true}}]
- containerExitCode: 143
  patterns: [{exitCode: 143}]
- containerExitCode: 220
  patterns: [{exitCode: 127, userLogRegex: '(?i)command not found'}]
- containerExitCode: 221
  patterns: [{userLogRegex: 'ran out of (memory|luck)'}]
- containerExitCode: 222
  patterns: [{platformLogRegex: 'killed [0-9]+ process(es)? of this container for its memory'}]
"""


class Summary:
    """A volume with an exit spec, and what the phase leaves."""

    def __init__(self, volume: Any, folder: pathlib.Path) -> None:
        self.volume = volume
        self.path = folder / "termination-log"
        self.logs = volume.root / "logs" / "local"
        self.logs.mkdir(parents=True)
        self.env = {"PAIRUN_TERMINATION_LOG": str(self.path)}

    def spec(self, text: str) -> None:
        """Leave the cluster's exit spec as init does."""
        problems = Problems()
        spec = read_exit_spec(Source("runtime-exit-spec.yaml", "cluster", text), problems)
        (self.volume.files / "exit-spec.json").write_text(json.dumps(spec.data))

    @property
    def text(self) -> str:
        """The message."""
        return self.path.read_text()

    @property
    def said(self) -> Any:
        """The message, taken apart as OpenPAI's REST server does."""
        pattern = r"\[PAI_RUNTIME_ERROR_START\]([\s\S]*)\[PAI_RUNTIME_ERROR_END\]"
        found = re.search(pattern, self.text)
        assert found is not None
        return yaml.safe_load(found[1])


@pytest.fixture
def summary(volume: Any, tmp_path: pathlib.Path) -> Summary:
    """A volume with `SPEC`."""
    made = Summary(volume, tmp_path)
    made.spec(SPEC)
    return made


def test_success_leaves_no_message(volume: Any, start: Any, summary: Summary) -> None:
    """A job that succeeded has no summary."""
    volume.command("exit 0")
    assert start(**summary.env).end() == 0
    assert not summary.path.exists()


@pytest.mark.parametrize(
    ("script", "code", "user", "matched"),
    [
        ("nosuchprogram", 220, 127, "command not found"),
        ("echo it ran out of luck; exit 3", 221, 3, "ran out of luck"),
        ("exit 3", 255, 3, None),
        ("kill -9 $$", 255, 137, None),
    ],
)
def test_the_exit_spec_decides(
    volume: Any,
    start: Any,
    summary: Summary,
    script: str,
    code: int,
    user: int,
    matched: str | None,
) -> None:
    """The container ends with the code of the first entry that fits, 255 where none does."""
    volume.command(script)
    assert start(**summary.env).end() == code
    assert (summary.said["exitCode"], summary.said["originUserExitCode"]) == (code, user)
    assert summary.said.get("matchedUserLogString") == matched
    assert (summary.logs / "pai-termination-log").read_text() == summary.text


def test_without_an_exit_spec_the_code_is_the_commands_own(
    volume: Any, start: Any, summary: Summary
) -> None:
    """Where no cluster says otherwise nothing replaces the user's code."""
    (volume.files / "exit-spec.json").unlink()
    volume.command("for i in $(seq 40); do echo line $i; done; exit 3")
    assert start(**summary.env).end() == 3
    assert summary.said["errorLogs"]["user"] == "".join(f"line {n}\n" for n in range(27, 41))


@pytest.mark.parametrize("budget", [256, 1024, 4096])
def test_a_message_keeps_its_budget(volume: Any, start: Any, summary: Summary, budget: int) -> None:
    """A long log is cut, the codes stay."""
    volume.command(
        "for i in $(seq 400); do echo $i 你好你好你好你好你好你好你好你好你好你好; done; exit 3"
    )
    assert start(**summary.env, PAIRUN_TERMINATION_BYTES=str(budget)).end() == 255
    assert 200 < summary.path.stat().st_size <= budget
    assert summary.said["originUserExitCode"] == 3


def test_a_stop_is_summarised_within_the_grace_time(
    volume: Any, start: Any, summary: Summary
) -> None:
    """A command that was told to stop, and ended by it, has a summary with that code."""
    volume.command("trap 'echo saved; exit 143' TERM; echo ready; while :; do sleep 0.1; done")
    running = start(**summary.env, PAIRUN_GRACE="5s")
    running.line("ready")
    running.signal(signal.SIGTERM)
    assert running.end() == 143
    assert summary.said["exitCode"] == 143
    # bash says of its own child that it was terminated
    lines = summary.said["errorLogs"]["user"].split()
    assert [line for line in lines if line != "Terminated"] == ["ready", "saved"]


def test_an_expression_that_runs_away_is_stopped_and_named(
    volume: Any, start: Any, summary: Summary
) -> None:
    """The cluster's mistake costs a quarter of a second, and is said."""
    summary.spec("- containerExitCode: 200\n  patterns: [{userLogRegex: '(x+x+)+y'}]\n")
    volume.command(f"echo y; echo {'x' * 300}; exit 4")
    running = start(**summary.env)
    assert running.end() == 255
    assert any("(x+x+)+y" in line for line in running.lines)


def test_a_summary_that_fails_costs_nothing(volume: Any, start: Any, summary: Summary) -> None:
    """A broken spec, and a message that cannot be written, leave the user's exit code."""
    (volume.files / "exit-spec.json").write_text("{")
    volume.command("exit 9")
    running = start(PAIRUN_TERMINATION_LOG="/nowhere/at/all")
    assert running.end() == 9
    assert any("/nowhere/at/all" in line for line in running.lines)


def test_a_log_that_is_a_fifo_costs_nothing(volume: Any, start: Any, summary: Summary) -> None:
    """A log that nobody can read has nothing to say, and nothing waits for its writer."""
    volume.command(f"rm -f {summary.logs}/runtime.log; mkfifo {summary.logs}/runtime.log; exit 9")
    running = start(**summary.env)
    assert running.end() == 255
    assert summary.said["originUserExitCode"] == 9
    assert not any("using the short one" in line for line in running.lines)


@pytest.mark.slow
def test_a_summary_that_hangs_is_stopped(volume: Any, start: Any, summary: Summary) -> None:
    """The process of the summary has a deadline; without it the short message stands."""
    volume.command("exit 9")
    hangs = "import pairun.runtime.children as c; c.own_command = lambda *_: ['/bin/sleep', '600']"
    running = start(**summary.env, TEST_PATCH=hangs)
    assert running.end() == 9
    assert summary.said["exitCode"] == 9
    assert any("using the short one" in line for line in running.lines)


def test_a_failed_task_keeps_its_code(volume: Any, start: Any, summary: Summary) -> None:
    """A task before the command that has a code of its own keeps it where no entry fits."""
    answer = {"outcome": "failure", "exit_code": 249, "message": "no peer", "registered": [],
              "results": {}, "environment": {}}  # fmt: skip
    volume.tasks(tasks=answer)
    volume.command("echo never")
    assert start(**summary.env).end() == 249
    assert summary.said["exitCode"] == 249


@pytest.mark.parametrize(
    "counts",
    ["<double_bit><total>1</total></double_bit>", "<dram_uncorrectable>2</dram_uncorrectable>"],
    ids=["until 2020", "2024"],
)
def test_the_state_of_a_gpu_counts(
    volume: Any, start: Any, summary: Summary, tmp_path: pathlib.Path, counts: str
) -> None:
    """An uncorrectable memory error of a GPU decides, and nvidia-smi has a second to tell."""
    program = tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()
    ecc = f"<ecc_errors><volatile>{counts}</volatile></ecc_errors>"
    report = f"<nvidia_smi_log><gpu></gpu><gpu>{ecc}</gpu></nvidia_smi_log>"
    program.write_text(f"#!/bin/sh\necho '{report}'\n")
    program.chmod(0o755)
    volume.command("exit 3")
    path = f"{program.parent}:/usr/bin:/bin"
    assert start(**summary.env, PATH=path).end() == 128
    assert summary.said["matchedGpuInfo"] == {"nvidiaDoubleEccError": True}
    program.write_text("#!/bin/sh\nsleep 60\n")
    assert start(**summary.env, PATH=path).end() == 255

"""The module cmd, with real processes."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pairun.module import Secret

if TYPE_CHECKING:
    from tests.modules.conftest import Harness

TABLE: list[dict[str, Any]] = [
    {
        "what": "an empty script is nothing to run",
        "args": {"script": " \n"},
        "verdict": "no_change",
        "because": "nothing to run",
        "review": "no_change",
    },
    {
        "what": "a program with arguments",
        "args": {"argv": ["touch", "{tmp}/a b"]},
        "verdict": "unknown",
        "values": {"code": 0},
        "leaves": {"{tmp}/a b": ""},
        "review": "unknown",
    },
    {
        "what": "a script in a directory",
        "args": {"script": "echo hi > here", "workdir": "{tmp}"},
        "leaves": {"{tmp}/here": "hi\n"},
    },
    {
        "what": "creates that exists",
        "args": {"script": "echo no > {tmp}/ran", "creates": "done", "workdir": "{tmp}"},
        "files": {"{tmp}/done": ""},
        "verdict": "no_change",
        "because": "done exists",
        "leaves": {"{tmp}/ran": None},
        "review": "unknown",
    },
    {
        "what": "creates that does not exist",
        "args": {"script": "echo yes > {tmp}/ran", "creates": "{tmp}/done"},
        "leaves": {"{tmp}/ran": "yes\n"},
    },
    {
        "what": "creates on the empty volume is known before the run",
        "args": {"script": "true", "creates": "{tmp}/pai/ready"},
        "review": "unknown",
    },
    {
        "what": "unless that is true",
        "args": {"script": "echo no > {tmp}/ran", "unless": "test -d {tmp}"},
        "verdict": "no_change",
        "leaves": {"{tmp}/ran": None},
        "review": "unknown",
    },
    {
        "what": "unless that is false",
        "args": {"script": "echo yes > {tmp}/ran", "unless": "test -d {tmp}/none"},
        "leaves": {"{tmp}/ran": "yes\n"},
    },
    {
        "what": "errexit ends at the first failure",
        "args": {"script": "false\necho no > {tmp}/ran"},
        "failure": "transient",
        "fault": "user",
        "says": "the script ended with exit code 1",
        "leaves": {"{tmp}/ran": None},
    },
    {
        "what": "without errexit it goes on",
        "args": {"script": "false\necho yes > {tmp}/ran", "errexit": False},
        "leaves": {"{tmp}/ran": "yes\n"},
    },
    {
        "what": "an exit code is in the sentence",
        "args": {"argv": ["sh", "-c", "exit 3"]},
        "failure": "transient",
        "says": "sh ended with exit code 3",
    },
    {
        "what": "an exit code that means success",
        "args": {"script": "exit 3", "ok_codes": [0, 3]},
        "values": {"code": 3},
    },
    {
        "what": "a program that does not exist",
        "args": {"argv": ["pairun-no-such-program"]},
        "failure": "permanent",
        "fault": "user",
        "says": "pairun-no-such-program does not exist",
    },
    {
        "what": "a command in the script that does not exist",
        "args": {"script": "pairun-no-such-program"},
        "failure": "permanent",
        "says": "exit code 127",
    },
    {
        "what": "a file that is not executable",
        "args": {"script": "{tmp}/data"},
        "files": {"{tmp}/data": "x"},
        "failure": "permanent",
        "says": "exit code 126",
    },
    {
        "what": "a signal by name",
        "args": {"script": "kill -KILL $$"},
        "failure": "transient",
        "says": "the script was killed by SIGKILL",
    },
    {
        "what": "a signal to a command in the script",
        "args": {"script": "sh -c 'kill -SEGV $$'"},
        "failure": "transient",
        "says": "killed by SIGSEGV",
    },
    {
        "what": "no working directory",
        "args": {"argv": ["true"], "workdir": "{tmp}/none"},
        "failure": "permanent",
        "says": "there is no such directory",
    },
    {
        "what": "standard input is empty",
        "args": {"argv": ["cat"], "capture": True},
        "values": {"code": 0, "stdout": ""},
    },
    {
        "what": "the output as a value",
        "args": {"script": "echo one; echo two", "capture": True},
        "values": {"code": 0, "stdout": "one\ntwo\n"},
    },
    {
        "what": "exported variables, and only what changed",
        "args": {
            "script": "export A=1 B='two\nlines'; C=3; unset GONE; cd /; export SAME=same",
            "export": True,
        },
        "env": {"GONE": "x", "SAME": "same", "KEPT": "k"},
        "exported": {"A": "1", "B": "two\nlines", "GONE": None},
    },
    {
        "what": "export on an early exit",
        "args": {"script": "export A=1\nexit 0\nexport B=2", "export": True},
        "exported": {"A": "1"},
    },
    {
        "what": "export with a changed PATH",
        "args": {"script": "export PATH=/nowhere", "export": True},
        "exported": {"PATH": "/nowhere"},
    },
    {
        "what": "export keeps the exit code",
        "args": {"script": "export A=1\nexit 4", "export": True},
        "failure": "transient",
        "says": "exit code 4",
    },
    {
        "what": "export of a script that execs",
        "args": {"script": "export A=1; exec true", "export": True},
        "failure": "permanent",
        "says": "did not reach its end",
    },
    {
        "what": "text is data, not a template",
        "args": {"script": "echo '{{ 7*7 }}'", "capture": True},
        "values": {"code": 0, "stdout": "{{ 7*7 }}\n"},
    },
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row["what"]))
def test_table(harness: Harness, row: dict[str, Any]) -> None:
    """Each row of the table holds."""
    harness.table("cmd", row)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({}, "exactly one of 'argv' and 'script'"),
        ({"argv": ["x"], "script": "y"}, "exactly one of 'argv' and 'script'"),
        ({"argv": []}, "'argv' must name a program"),
        ({"argv": ["x"], "export": True}, "'export' needs a 'script'"),
        ({"script": "x", "ok_codes": []}, "'ok_codes'"),
        ({"argv": [Secret("hunter2")]}, "a secret"),
    ],
)
def test_what_cannot_work_is_refused(harness: Harness, args: dict[str, Any], says: str) -> None:
    """A combination of arguments that makes no sense is a problem in words."""
    assert any(says in problem.message for problem in harness.problems("cmd", args))


@pytest.fixture(params=["bash", "sh"])
def shell_path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A PATH with everything the tests need, and with bash or without."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for program in ("sh", "cat", "ls", "sleep", *(["bash"] if request.param == "bash" else [])):
        found = shutil.which(program)
        assert found is not None
        (folder / program).symlink_to(found)
    return str(folder)


def test_a_script_is_seen_by_nobody(harness: Harness, shell_path: str) -> None:
    """Neither an argument list nor an inherited file shows the text of a script."""
    script = (
        ": words-of-this-script-alone\n"
        f"cat /proc/[0-9]*/cmdline > {harness.tmp}/seen 2>/dev/null || :\n"
        f"ls -l /proc/self/fd > {harness.tmp}/open\n"
    )
    outcome = harness.run("cmd", {"script": Secret(script)}, {"PATH": shell_path})
    assert outcome.failure is None
    assert b"words-of-this-script-alone" not in (harness.tmp / "seen").read_bytes()
    assert b"/proc/self/fd/" in (harness.tmp / "seen").read_bytes()
    assert "pairun-script" not in (harness.tmp / "open").read_text()


def test_a_script_may_be_longer_than_an_argument(harness: Harness, shell_path: str) -> None:
    """A script of more than 128 KiB, the limit of one argument, runs to its end."""
    script = "x=" + "a" * 300_000 + "\n" + ": filler\n" * 1000 + "export LENGTH=${#x}\n"
    outcome = harness.run("cmd", {"script": script, "export": True}, {"PATH": shell_path})
    assert outcome.result is not None
    assert outcome.result.environment["LENGTH"] == "300000"


def test_the_shells_messages_name_the_users_lines(
    harness: Harness, shell_path: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """What pairun adds to a script does not move its line numbers."""
    args = {"script": ":\n:\nno-such-command-here", "export": True}
    assert harness.run("cmd", args, {"PATH": shell_path}).failure is not None
    assert "3: " in capfd.readouterr().err


def test_output_goes_to_the_log(harness: Harness, capfd: pytest.CaptureFixture[str]) -> None:
    """Without capture the output of the command is the output of the task."""
    harness.run("cmd", {"script": "echo out; echo err >&2"})
    assert capfd.readouterr() == ("out\n", "err\n")


def test_without_a_shell_a_script_fails_in_words(harness: Harness) -> None:
    """An image with neither bash nor sh gets one clear sentence; argv still runs."""
    (harness.tmp / "empty").mkdir()
    env = {"PATH": "{tmp}/empty"}
    outcome = harness.run("cmd", {"script": "true"}, env)
    assert outcome.failure is not None
    assert "neither bash nor sh" in outcome.failure.message
    assert outcome.failure.kind == "permanent"
    true = shutil.which("true")
    assert harness.run("cmd", {"argv": [true]}, env).failure is None


def test_a_command_ends_with_its_time(harness: Harness) -> None:
    """A command that does not end is ended at the deadline, as a timeout."""
    start = time.monotonic()
    outcome = harness.run("cmd", {"argv": ["sleep", "60"]}, deadline=start + 0.2)
    assert outcome.failure is not None
    assert outcome.failure.kind == "timeout"
    assert time.monotonic() - start < 30


def test_what_stays_in_the_background_is_not_waited_for(harness: Harness) -> None:
    """A capture ends with the script, not with what holds its output open."""
    start = time.monotonic()
    args = {"script": "sleep 60 & echo done", "capture": True}
    outcome = harness.run("cmd", args)
    assert outcome.result is not None
    assert outcome.result.values["stdout"] == "done\n"
    assert time.monotonic() - start < 30

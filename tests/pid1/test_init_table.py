"""The table of docs/pid1.md, row by row, with tini and dumb-init beside us where they differ or agree.

Each runs as PID 1 of a namespace with the same shell script below it.
"""

from __future__ import annotations

import pathlib
import re
import shutil
import signal
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.stopwatch import Stopwatch

DUMB_INIT, TINI, OURS = "dumb-init", "tini", "pairun"
ALL = [OURS, TINI, DUMB_INIT]
DOCUMENT = pathlib.Path(__file__).parents[2] / "docs" / "pid1.md"
Under = Callable[..., Any]


@pytest.fixture
def under(volume: Any, in_namespace: Any) -> Under:
    """Starts a shell script under an init; its options for the two others, our arguments for us."""

    def begin(init: str, script: str, *options: str, TEST_PATCH: str = "", **args: Any) -> Any:
        if init == OURS:
            volume.args(**args)
            volume.command(script)
            return in_namespace(TEST_PATCH=TEST_PATCH)
        program = shutil.which(init)
        if program is None:
            pytest.skip(f"{init} is not here to compare with")
        group = ["-g"] if init == TINI else []
        return in_namespace(program, *group, *options, "--", "bash", "-c", script)

    return begin


@pytest.fixture(params=ALL)
def init(request: pytest.FixtureRequest) -> str:
    """Each of the three."""
    return str(request.param)


def _children(pid: int) -> list[int]:
    text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(n) for n in text.split()]


def _stat(pid: int) -> list[str]:
    """State, parent, group, session."""
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()[:4]


def test_reaping(under: Under, init: str, eventually: Any) -> None:
    """Orphans that end are waited for; no zombie stays."""
    running = under(
        init, "for i in 1 2 3 4 5 6 7 8; do (setsid true &); done; echo made; exec sleep 600"
    )
    running.line("made")
    eventually(lambda: len(_children(running.pid)) == 1)


@pytest.mark.parametrize(
    ("script", "code"),
    [("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("kill -9 $$", 137), ("kill -15 $$", 143)],
)
def test_exit_code(under: Under, init: str, script: str, code: int) -> None:
    """The exit code is the command's, 128+n for a death by signal n; nothing is remapped."""
    assert under(init, script).end() == code


def test_signals_to_the_group(under: Under, init: str, print_signals: str) -> None:
    """What the command has started hears a signal, too (tini: with -g)."""
    running = under(init, f"trap : TERM; {print_signals} SIGTERM & wait; wait")
    running.line("ready")
    running.signal(signal.SIGTERM)
    running.line("got SIGTERM")
    running.end()


def test_signals_to_the_process_alone(under: Under, print_signals: str) -> None:
    """As tini without -g and dumb-init with --single-child: only the command's process hears it."""
    script = f"{print_signals} SIGTERM & trap 'echo told; kill $!; exit 6' TERM; wait; wait"
    running = under(OURS, script, signals_to="process")
    running.line("ready")
    running.signal(signal.SIGTERM)
    assert running.end() == 6
    assert len(running.got("got SIGTERM")) == 1


@pytest.mark.parametrize("init", [OURS, DUMB_INIT])
def test_rewrite(under: Under, init: str, print_signals: str) -> None:
    """A signal may be rewritten to another one (dumb-init: --rewrite 15:10)."""
    running = under(
        init,
        f"exec {print_signals} SIGUSR1 4",
        "--rewrite",
        "15:10",
        signals={"SIGTERM": "SIGUSR1"},
    )
    running.line("ready")
    running.signal(signal.SIGTERM)
    assert running.end() == 4
    assert not running.got("got SIGTERM")


@pytest.mark.parametrize("init", [OURS, DUMB_INIT])
def test_not_forwarded(under: Under, init: str, print_signals: str) -> None:
    """A signal may be kept from the command (dumb-init: --rewrite 1:0)."""
    running = under(
        init, f"exec {print_signals} SIGTERM 4", "--rewrite", "1:0", signals={"SIGHUP": []}
    )
    running.line("ready")
    running.signal(signal.SIGHUP)
    running.signal(signal.SIGTERM)
    assert running.end() == 4
    assert not running.got("got SIGHUP")


def test_rewrite_in_steps(under: Under, print_signals: str) -> None:
    """Ours alone: one signal at once, another after a wait that the grace time bounds."""
    steps = ["SIGUSR1", "100ms", "SIGTERM"]
    running = under(OURS, f"exec {print_signals} SIGTERM 4", signals={"SIGTERM": steps})
    running.line("ready")
    running.signal(signal.SIGTERM)
    assert running.end() == 4
    assert running.lines.index("got SIGUSR1") < running.lines.index("got SIGTERM")


@pytest.mark.parametrize("init", [OURS, DUMB_INIT])
def test_stopped_and_continued(
    under: Under, init: str, print_signals: str, eventually: Any
) -> None:
    """SIGTSTP stops the command, although the kernel ignores it for an orphaned group."""
    running = under(init, f"exec {print_signals} SIGTERM 4")
    running.line("ready")
    (child,) = _children(running.pid)
    running.signal(signal.SIGTSTP)
    # dumb-init then sends itself SIGSTOP, which discards a SIGCONT that is pending: it must wait again
    eventually(lambda: _stat(child)[0] == "T" and _stat(running.pid)[0] == "S")
    running.signal(signal.SIGCONT)
    running.line("got SIGCONT")
    running.signal(signal.SIGTERM)
    assert running.end() == 4


def test_a_stopped_command_is_woken_for_a_stop(
    under: Under, print_signals: str, eventually: Any
) -> None:
    """Ours alone: TERM to a stopped command is followed by SIGCONT, so that it can act on it."""
    running = under(OURS, f"exec {print_signals} SIGTERM 4")
    running.line("ready")
    (child,) = _children(running.pid)
    running.signal(signal.SIGTSTP)
    eventually(lambda: _stat(child)[0] == "T")
    running.signal(signal.SIGTERM)
    assert running.end() == 4


@pytest.mark.parametrize("name", ["HUP", "INT", "USR1", "PIPE"])
def test_ignored_at_our_start(volume: Any, in_namespace: Any, driver: list[str], name: str) -> None:
    """What was ignored when we started is not ignored in the command."""
    volume.command("exec grep SigIgn /proc/self/status")
    running = in_namespace("sh", "-c", f"trap '' {name}; exec \"$@\"", "sh", *driver, volume.root)
    assert running.end() == 0
    ignored = int(running.got("SigIgn")[0].split()[1], 16)
    assert not ignored & 1 << (signal.Signals[f"SIG{name}"] - 1)


def test_a_stop_before_the_command(volume: Any, in_namespace: Any, succeeded: Any) -> None:
    """A stop that comes before there is a command starts none, and ends with 128+n."""
    volume.tasks(tasks=succeeded, run={"tasks": "trap '' TERM; echo working; sleep 0.3"})
    volume.command("echo command")
    running = in_namespace()
    running.line("working")
    running.signal(signal.SIGTERM)
    assert running.end() == 143
    assert not running.got("command")


def test_orphan_storm(under: Under, init: str, waits_for_ever: dict[str, str]) -> None:
    """A storm of orphans costs neither the exit code nor the end."""
    script = "i=0; while [ $i -lt 1000 ]; do ( : & ); i=$((i+1)); done; echo over; exit 3"
    running = under(init, script, **waits_for_ever)
    running.line("over")
    assert running.end() == 3


def test_escaped(under: Under, init: str) -> None:
    """What left the session is told before the end; the two others leave it to the kernel's KILL."""
    daemon = "trap 'echo told; exit' TERM; echo daemon; while :; do sleep 0.05; done"
    running = under(init, f'trap "exit 6" TERM; setsid bash -c "{daemon}" & wait')
    running.line("daemon")
    running.signal(signal.SIGTERM)
    assert running.end() == 6
    assert bool(running.got("told")) == (init == OURS)


def test_what_is_left_is_drained(under: Under, init: str) -> None:
    """A child in the background may finish; the two others end with the command."""
    running = under(init, "(sleep 0.5; echo late) & exit 3")
    assert running.end() == 3
    assert bool(running.got("late")) == (init == OURS)


def test_kill_at_the_end_of_the_time(volume: Any, in_namespace: Any) -> None:
    """Ours alone: a command that ignores a stop is killed while there is time for handlers."""
    volume.command("trap '' TERM; echo ready; while :; do sleep 0.05; done")
    running = in_namespace(PAIRUN_GRACE="2s")
    running.line("ready")
    with Stopwatch() as watch:
        running.signal(signal.SIGTERM)
        assert running.end() == 137
    assert watch.within(2.0), watch


def test_session_and_terminal(under: Under, init: str) -> None:
    """The command leads a session and has no terminal; tini leaves it the terminal it has."""
    running = under(init, "echo ready; exec sleep 600")
    running.line("ready")
    (child,) = _children(running.pid)
    group, session = (int(n) for n in _stat(child)[2:4])
    assert group == child
    assert (session == child) == (init != TINI)
    terminal = pathlib.Path(f"/proc/{child}/stat").read_text().rsplit(") ", 1)[1].split()[4]
    assert init == TINI or terminal == "0"


def test_death_of_pid1(under: Under, init: str, eventually: Any) -> None:
    """When PID 1 is killed from outside, the kernel ends everything; no death signal is needed."""
    running = under(init, "trap '' TERM; echo ready; while :; do sleep 0.05; done")
    running.line("ready")
    (child,) = _children(running.pid)
    running.signal(signal.SIGKILL)
    running.end()
    eventually(lambda: not pathlib.Path(f"/proc/{child}").exists())


def test_not_pid1(volume: Any, print_signals: str, driver: list[str], tmp_path: Any) -> None:
    """Where another process is PID 1 (a shared PID namespace), orphans come to us all the same."""
    import subprocess

    volume.command("(setsid sleep 600 & echo parent $PPID); exit 2")
    done = subprocess.run(
        [*driver, volume.root], stdout=subprocess.PIPE, text=True, timeout=30, check=False
    )
    assert done.returncode == 2
    assert "parent" in done.stdout


def test_who_is_said(under: Under) -> None:
    """Ours alone: the line about a stop names its sender; there is no option for more words."""
    running = under(OURS, "echo ready; exec sleep 600")
    running.line("ready")
    running.signal(signal.SIGTERM)
    assert running.end() == 143
    (line,) = running.got("[pairun] received SIGTERM")
    assert "from outside this container" in line


@pytest.mark.parametrize(
    ("argv", "code"), [(["/no/such/program"], 127), (["/"], 126), (["/etc/passwd"], 126)]
)
def test_a_command_that_cannot_start(
    volume: Any, in_namespace: Any, argv: list[str], code: int
) -> None:
    """127 for a program that is not there, 126 for one that cannot be executed; as tini does."""
    volume.args(argv=argv)
    assert in_namespace().end() == code
    program = shutil.which(TINI)
    if program is None:
        pytest.skip("tini is not here to compare with")
    assert in_namespace(program, "--", *argv).end() == code


def test_every_row_names_a_test() -> None:
    """Each row of the table names a test of this file, and each test stands in a row."""
    text = DOCUMENT.read_text().split("## Compared with tini and dumb-init")[1].split("\n## ")[0]
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    rows = [row for row in rows if "`test_" in row]
    named = [name for row in rows for name in re.findall(r"`(test_\w+)`", row)]
    tests = {n for n in vars(sys.modules[__name__]) if n.startswith("test_")}
    assert len(rows) > 15
    assert set(named) == tests - {"test_every_row_names_a_test"}

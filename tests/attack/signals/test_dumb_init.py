"""What the test suites of dumb-init and tini check, checked here; docs/pid1.md has the deviations.

dumb-init's cases run with and without its debug output and its ``setsid`` mode. pairun has no debug
mode; the other two modes are ``signals_to: group`` and ``signals_to: process``.
"""

from __future__ import annotations

import os
import pathlib
import pty
import re
import signal
import subprocess
import sys
import termios
from collections.abc import Callable
from typing import Any

import pytest

MODES = ["group", "process"]
DOCUMENT = pathlib.Path(__file__).parents[3] / "docs" / "pid1.md"
STOPPING = [signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU]
NORMAL = sorted(
    set(map(signal.Signals, range(1, 32)))
    - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, *STOPPING}
)

Start = Callable[..., Any]


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    """Whom the command's signals reach."""
    return str(request.param)


def _below(pid: int) -> list[int]:
    """Every process below one, the nearest first."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [found for child in map(int, children) for found in (child, *_below(child))]


def _state(pid: int) -> str:
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0]


# --- exit status ---


@pytest.mark.slow
@pytest.mark.parametrize("code", [0, 1, 2, 32, 64, 127, 254, 255])
def test_exit_status(volume: Any, in_namespace: Start, mode: str, code: int) -> None:
    """The container exits with the command's exit status."""
    volume.args(signals_to=mode)
    volume.command(f"exit {code}")
    assert in_namespace().end() == code


@pytest.mark.slow
@pytest.mark.parametrize("name", ["TERM", "INT", "QUIT", "KILL", "SEGV", "XFSZ"])
def test_death_by_a_signal(volume: Any, in_namespace: Start, mode: str, name: str) -> None:
    """The container exits with 128 + n when signal n ends the command."""
    volume.args(signals_to=mode, shell="sh")
    volume.command(f"ulimit -c 0; kill -{name} $$; exec sleep 600")
    assert in_namespace().end() == 128 + signal.Signals[f"SIG{name}"]


@pytest.mark.slow
@pytest.mark.parametrize("program", ["/doesnotexist", "doesnotexist", "./doesnotexist"])
def test_bad_exec(volume: Any, in_namespace: Start, mode: str, program: str) -> None:
    """A program that does not exist is named, and the exit code is 127."""
    volume.args(argv=[program], signals_to=mode)
    running = in_namespace()
    assert running.end() == 127
    assert any(f"the command's program {program} does not exist" in li for li in running.lines)


# --- which signals arrive ---


def test_proxies_signals(volume: Any, start: Start, print_signals: str, mode: str) -> None:
    """Every signal but those of the terminal arrives as it is, faults and SIGPIPE included."""
    volume.args(signals_to=mode)
    volume.command(f"exec {print_signals} SIGRTMIN 7")
    running = start(PAIRUN_GRACE="10m")
    running.line("ready")
    for number in NORMAL:
        running.signal(number)
        running.line(f"got {number.name}")
    running.signal(signal.SIGRTMIN)
    assert running.end() == 7


def test_a_real_fault_of_ours_ends_us(volume: Any, in_namespace: Start) -> None:
    """A blocked signal does not hold back a fault of PID 1's own (sigprocmask(2))."""
    volume.command("echo ready; exec sleep 600")
    running = in_namespace(TEST_PATCH="import ctypes; m.block_signals(); ctypes.string_at(0)")
    # unshare(1) repeats the signal
    assert running.end() == -signal.SIGSEGV
    assert not running.got("ready")


def test_our_own_broken_pipe_is_not_for_the_command(volume: Any, print_signals: str) -> None:
    """SIGPIPE that a write of PID 1's own raises does not reach the command."""
    reader, writer = os.pipe()
    os.close(reader)
    volume.command(f"exec {print_signals} SIGUSR1 5 >{volume.root}/signals")
    patch = (
        "import threading, pairun.runtime.logs as logs\n"
        "import threading; threading.Thread.start = lambda self: (_ for _ in ()).throw(RuntimeError('none'))\n"
    )
    code = f"{patch}import sys, pairun.runtime.main as m; sys.exit(m.main({str(volume.root)!r}, m.Vault()))"
    phase = subprocess.Popen([sys.executable, "-c", code], stdout=writer, stderr=writer)
    os.close(writer)
    received = pathlib.Path(volume.root) / "signals"
    while not (received.exists() and received.read_text().startswith("ready")):
        assert phase.poll() is None
    phase.send_signal(signal.SIGTERM)
    phase.send_signal(signal.SIGUSR1)
    assert phase.wait(60) == 5
    assert "SIGPIPE" not in received.read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rewrite", "sent"),
    [
        ({}, "TERM QUIT CONT INT"),
        ({"TERM": "INT"}, "TERM QUIT CONT INT"),
        ({"TERM": "INT", "INT": "TERM", "QUIT": "QUIT"}, "TERM QUIT CONT INT"),
        ({"HUP": "SYS", "SYS": "HUP"}, "HUP SYS"),
        ({"TERM": "QUIT", "INT": None, "WINCH": None}, "INT WINCH TERM"),
        ({"TTIN": "USR1", "TTOU": "USR2", "TSTP": "HUP"}, "TTIN TTOU TSTP"),
    ],
)
def test_rewrite(
    volume: Any, in_namespace: Start, print_signals: str, mode: str,
    rewrite: dict[str, str | None], sent: str,
) -> None:  # fmt: skip
    """Signals are rewritten one by one, and not a second time; to nothing: it does not arrive."""
    signals = {f"SIG{old}": f"SIG{new}" if new else [] for old, new in rewrite.items()}
    volume.args(signals_to=mode, signals=signals)
    volume.command(f"exec {print_signals} SIGRTMIN 7")
    running = in_namespace(PAIRUN_GRACE="10m")
    running.line("ready")
    for old in sent.split():
        running.signal(signal.Signals[f"SIG{old}"])
        if new := rewrite.get(old, old):
            assert running.line("got") == f"got SIG{new}"
    running.signal(signal.SIGRTMIN)
    assert running.end() == 7


# --- the terminal's signals ---


@pytest.mark.slow
@pytest.mark.parametrize("number", STOPPING)
def test_suspend(
    volume: Any, start: Start, print_signals: str, eventually: Any, mode: str,
    number: signal.Signals,
) -> None:  # fmt: skip
    """SIGTSTP, SIGTTIN and SIGTTOU stop the command, SIGCONT continues it; PID 1 does not stop."""
    volume.args(signals_to=mode)
    volume.command(f"exec {print_signals} SIGTERM 7")
    running = start()
    running.line("ready")
    (command,) = _below(running.pid)
    running.signal(number)
    eventually(lambda: _state(command) == "T")
    assert _state(running.pid) != "T"
    running.signal(signal.SIGCONT)
    running.line("got SIGCONT")
    running.signal(signal.SIGTERM)
    assert running.end() == 7


# --- the group and what is left of it ---

PIPELINE = "sleep 600 | tail & sleep 600 | tail >&2 & echo started; wait"


def test_pipeline_ends(volume: Any, start: Start, eventually: Any, mode: str) -> None:
    """SIGTERM ends two pipelines of a shell; in mode `process` what the shell leaves gets it, too."""
    volume.args(signals_to=mode)
    volume.command(PIPELINE)
    running = start()
    running.line("started")
    eventually(lambda: len(_below(running.pid)) == 5)
    pids = _below(running.pid)
    running.signal(signal.SIGTERM)
    assert running.end() == 143
    eventually(lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid in pids))


@pytest.mark.slow
def test_term_after_the_end(
    volume: Any, in_namespace: Start, print_signals: str, mode: str
) -> None:
    """When the command ends, what is left of its session gets SIGTERM, after 3 s to finish."""
    fifo = pathlib.Path(volume.root) / "fifo"
    os.mkfifo(fifo)
    volume.args(signals_to=mode)
    volume.command(f"{print_signals} SIGTERM & read -r line <{fifo}; exit 0")
    running = in_namespace()
    running.line("ready")
    fifo.write_text("go\n")
    assert running.end() == 0
    assert running.got("got") == ["got SIGTERM"]


def test_term_and_cont_at_the_end(volume: Any, start: Start, print_signals: str) -> None:
    """What is left over gets SIGTERM, then SIGCONT."""
    fifo = pathlib.Path(volume.root) / "fifo"
    os.mkfifo(fifo)
    volume.command(f"setsid {print_signals} SIGCONT & read -r line <{fifo}; exit 0")
    running = start()
    running.line("ready")
    fifo.write_text("go\n")
    assert running.end() == 0
    assert running.got("got") == ["got SIGTERM", "got SIGCONT"]


def test_group_without_the_leader(volume: Any, in_namespace: Start, print_signals: str) -> None:
    """A signal reaches a grandchild although its parent, the command, survives that signal."""
    volume.command(f"trap : USR1; {print_signals} SIGUSR1 & wait; wait; echo survived; exit 4")
    running = in_namespace()
    running.line("ready")
    running.signal(signal.SIGUSR1)
    running.line("got SIGUSR1")
    assert running.end() == 4
    assert running.got("survived")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["TERM", "USR1", "USR2", "INT"])
def test_default_action(volume: Any, in_namespace: Start, name: str) -> None:
    """A signal that the command does not handle ends it, and the exit code is 128 + n."""
    volume.command("echo ready; exec sleep 600")
    running = in_namespace()
    running.line("ready")
    number = signal.Signals[f"SIG{name}"]
    running.signal(number)
    assert running.end() == 128 + number


def test_masks_of_the_starter(volume: Any, in_namespace: Start, driver: list[str]) -> None:
    """The command ignores and blocks no signal, whatever PID 1 inherits from its starter."""
    blocked = "signal.pthread_sigmask(signal.SIG_BLOCK, {15, 21, 4}); "
    ignored = "[signal.signal(n, signal.SIG_IGN) for n in (22, 11, 2)]; "
    program = f"import os, signal, sys; {blocked}{ignored}os.execv(sys.argv[1], sys.argv[1:])"
    volume.args(argv=["cat", "/proc/self/status"])
    running = in_namespace(sys.executable, "-c", program, *driver, str(volume.root))
    assert running.end() == 0
    for name in ("SigBlk", "SigIgn"):
        (line,) = running.got(name)
        # glibc's posix_spawn ignores its own signals 32 and 33
        assert not int(line.split()[1], 16) & 0x7FFF_FFFF


# --- the working directory ---


@pytest.mark.parametrize("argv", [["sh", "-c", "pwd"], ["./here"], None])
def test_working_directory(
    volume: Any, start: Start, tmp_path: pathlib.Path, monkeypatch: Any, argv: list[str] | None
) -> None:
    """The command starts where PID 1 was started, and PID 1 itself is in ``/``."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").write_text("#!/bin/sh\npwd\n")
    (tmp_path / "here").chmod(0o755)
    if argv is None:
        # PID 1 leaves the directory when it has started the command.
        left = "until [ $(readlink /proc/$PPID/cwd) = / ]; do sleep 0.01; done"
        volume.command(f"{left}; readlink /proc/$PPID/cwd; echo $PAI_WORK_DIR; pwd")
    else:
        volume.args(argv=argv)
    running = start()
    assert running.end() == 0
    ours = [line for line in running.lines if not line.startswith("[pairun]")]
    expected = [str(tmp_path)]
    assert ours == (["/", *expected * 2] if argv is None else expected)


def test_working_directory_is_unmounted(
    volume: Any, in_namespace: Start, driver: list[str]
) -> None:
    volume.command("pwd; cd /; umount /mnt && echo unmounted")
    script = 'mount -t tmpfs none /mnt && cd /mnt && exec "$@"'
    running = in_namespace("sh", "-c", script, "sh", *driver, str(volume.root))
    assert running.end() == 0, running.lines
    assert running.got("unmounted")


def test_working_directory_is_removed(
    volume: Any, start: Start, tmp_path: pathlib.Path, monkeypatch: Any
) -> None:
    """A command that removes its working directory costs the exit handlers nothing."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    volume.tasks(
        tasks={"outcome": "success", "exit_code": 0, "registered": ["undo"], "results": {},
               "environment": {}},
        handlers={"failed": False},
    )  # fmt: skip
    volume.command(f"rmdir {tmp_path}/work; exit 3")
    running = start()
    assert running.end() == 3
    assert running.got("handlers ran")
    assert any(f"{tmp_path}/work cannot be entered: No such file" in li for li in running.lines)


# --- terminals ---


def _on_a_terminal(volume: Any, driver: list[str], typed: bytes) -> tuple[int, bytes]:
    """The phase with a controlling terminal at which somebody types: its exit code and output."""
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["PAIRUN_PLAIN_FILES"] = "1"
        os.execv(driver[0], [*driver, str(volume.root)])
    attributes = termios.tcgetattr(fd)
    attributes[1] &= ~termios.OPOST
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(fd, termios.TCSANOW, attributes)
    os.write(fd, typed)
    output = b""
    while True:
        try:
            piece = os.read(fd, 65536)
        except OSError:
            # EIO: the last process has closed its end (pty(7))
            break
        if not piece:
            break
        output += piece
    os.close(fd)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), output


def test_terminal(volume: Any, driver: list[str]) -> None:
    """The command reads from a terminal and writes to it, to the end of the input."""
    volume.args(argv=["tac"])
    code, output = _on_a_terminal(volume, driver, b"1\n2\n3\n\x04\x04")
    assert code == 0
    assert b"3\n2\n1\n" in output


def test_terminal_has_no_job_control(volume: Any, driver: list[str]) -> None:
    """A shell on a terminal runs its lines; it has no job control, since PID 1 keeps the terminal."""
    volume.args(argv=["bash", "--norc"])
    code, output = _on_a_terminal(volume, driver, b'echo "flags are: [$-]"\nexit 3\n')
    assert code == 3
    flags = re.search(rb"flags are: \[(\w+)\]", output)
    assert flags
    assert b"m" not in flags[1]


# --- the table of deviations ---


def test_every_deviation_names_a_test() -> None:
    text = DOCUMENT.read_text().split("## Deviations from dumb-init and tini")[1].split("\n## ")[0]
    rows = [line for line in text.splitlines() if line.startswith("| ") and "`test_" in line]
    assert len(rows) > 8
    for row in rows:
        for name in re.findall(r"`(test_\w+)`", row):
            assert name in globals(), name

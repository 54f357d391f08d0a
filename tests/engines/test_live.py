"""``pairun run`` on a terminal, as a person sees it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.ptyscreen import PtyScreen
from tests.webserver import Asked, WebServer

pytestmark = pytest.mark.slow

WAITS = "until [ -e {} ]; do read -t 0.1 <> <(:) || :; done"
"""Waits for a file in the shell, without a process for each look."""

HOSTILE = (
    r"printf 'one [bold]two[/bold] \033[31mthree\033[0m \033]0;title\007four "
    r"\342\200\256five\n\033[2J\033[?25hsix\rseven\n'"
)


@pytest.fixture
def terminal(job: Any) -> Callable[..., PtyScreen]:
    """Starts ``pairun run`` on the job in a terminal of its own."""

    def start(*args: str, columns: int = 80) -> PtyScreen:
        argv = [sys.executable, "-m", "pairun", "run", str(job.save()), *args]
        return PtyScreen(argv, columns=columns, cwd=str(job.folder))

    return start


def waiting_task(job: Any, *, script: str, **keywords: Any) -> str:
    """Append a task that ends once a file exists; returns that file."""
    go = f"{job.folder}/go"
    job.document["extras"] = {
        "pairun": {
            "runtime": [
                {
                    "append": None,
                    "id": "prepare",
                    "name": "The data is there",
                    "cmd": {"script": script.format(wait=WAITS.format(go))},
                    **keywords,
                }
            ]
        }
    }
    return go


def touch(path: str) -> None:
    with open(path, "w"):
        pass


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_foot_shows_what_runs_and_the_recap_what_happened(
    job: Any, terminal: Any, columns: int
) -> None:
    """Task, attempt and time while it runs, lines above as they come; a recap, and no leftovers."""
    first = f"{job.folder}/first"
    go = waiting_task(
        job,
        script=f"[ -e {first} ] || {{{{ : > {first}; exit 3; }}}}; "
        "echo the task says this before it ends; {wait}",
        retries=9,
        delay="10ms",
        timeout="20m",
    )
    job.role("worker", HOSTILE, "echo " + "many words " * 15)
    with terminal(columns=columns) as run:
        run.wait_for(lambda text: re.search(r"attempt 2 of 10 +[1-9] s of 20 m", text))
        run.wait_for(lambda text: "the task says this before it ends" in text)
        assert re.search(
            r"worker-0  runtime  prepare  attempt 2 of 10 +\d s of 20 m\n1 of 1 running", run.text
        )
        assert not run.shows_cursor()
        assert all(len(row) <= columns for row in run.rows)
        touch(go)
        assert run.end() == 0, run.text
        text = run.text
    assert run.shows_cursor()
    assert "running" not in text
    assert re.search(r"worker-0 \| one \[bold\]two\[/bold\] three four \ufffdfive", text)
    assert "worker-0 | seven\n" in text
    assert b"\033]0;" not in run.raw
    assert b"\033[2J" not in run.raw
    many = [line for line in text.split("\n") if "many" in line]
    assert all(line.startswith(("worker-0 | many", "         | ")) for line in many)
    assert len(many) == len("many words " * 15) // (columns - 11) + 1
    assert not any(line.endswith(("wor", "man", "ma", "m")) for line in many)
    assert re.search(r"instance +ok +changed +skipped +failed +init +command", text)
    assert re.search(r"worker-0 +2 +2 +2 +0 +exit 0", text)
    assert "prepare succeeded at attempt 2" in text
    assert "\nsucceeded: " in text


SIZE = 4 << 20


def test_a_download_has_a_bar(job: Any, terminal: Any) -> None:
    """How much of how much, in place of lines that scroll; the user's own lines all stay."""
    seen = threading.Event()

    def slow(asked: Asked) -> None:
        """Send a piece now and then, and the rest once somebody has seen enough."""
        sent = asked.handler
        sent.send_response(200)
        sent.send_header("Content-Length", str(SIZE))
        sent.end_headers()
        left = SIZE
        while left:
            piece = left if seen.wait(0.2) else min(1 << 15, left)
            sent.wfile.write(b"x" * piece)
            left -= piece

    with WebServer(slow) as server:
        waiting_task(job, script="true", timeout="20m")
        (task,) = job.document["extras"]["pairun"]["runtime"]
        del task["cmd"]
        task["download"] = {
            "url": f"{server.url}/data",
            "dest": f"{job.folder}/data",
        }
        job.role("w", "echo progress mine: 1 MiB; echo begun")
        with terminal() as run:
            run.wait_for(
                lambda text: re.search(
                    r"w-0  runtime  prepare +[━╸╺]+ +[\d.]+ MiB of 4 MiB, \d+ s of 20 m", text
                )
            )
            seen.set()
            assert run.end() == 0, run.text
    assert "progress prepare" not in run.text
    assert "w-0 | progress mine: 1 MiB\n" in run.text
    assert "w-0 | begun" in run.text


def test_secrets_are_masked_on_the_screen(job: Any, terminal: Any) -> None:
    """A secret is masked above the foot also if escape codes split it, and in the recap."""
    job.document["secrets"] = {"token": "open-sesame"}
    job.role(
        "w", r"printf 'open-\033[1m%same\nopen-%same\n' se se; echo '<% $secrets.token %>'; exit 3"
    )
    with terminal() as run:
        assert run.end() == 3
    assert "sesame" not in run.text
    assert b"sesame" not in run.raw
    assert "w-0 | ******" in run.text


def test_a_terminal_that_changes_its_size_keeps_no_leftovers(job: Any, terminal: Any) -> None:
    """A foot that was drawn for another width is removed as a whole."""
    go = f"{job.folder}/go"
    job.role("w", WAITS.format(go), instances=3)
    with terminal(columns=120) as run:
        for columns in (80, 60, 100):
            run.wait_for(lambda text: text.count("runtime  command") == 3)
            run.resize(columns, 24)
            seen = len(run.raw)
            run.wait_for(lambda text, seen=seen: len(run.raw) > seen + 200)
            run.wait_for(lambda text: text.count("of 3 running") == 1)
        touch(go)
        assert run.end() == 0
    assert "running" not in run.text
    assert run.shows_cursor()


def test_ctrl_z_and_ctrl_c_leave_the_terminal_in_order(job: Any) -> None:
    """In a shell: Ctrl-Z shows the prompt and the cursor, fg the foot again; Ctrl-C ends with 130."""
    job.role("w", "sleep 100")
    shell = ["bash", "--norc", "--noprofile", "-i"]
    with PtyScreen(shell, cwd=str(job.folder), env={"PS1": "prompt> "}) as run:
        run.wait_for(lambda text: "prompt>" in text)
        run.press(f"{sys.executable} -m pairun run {job.save()}\r".encode())
        run.wait_for(lambda text: re.search(r"w-0  runtime  command .*\n1 of 1 running", text))
        assert not run.shows_cursor()
        run.press(b"\x1a")
        run.wait_for(lambda text: re.search(r"(?s)Stopped.*\nprompt>$", text))
        assert run.shows_cursor()
        assert "running" not in run.text
        run.press(b"fg\r")
        run.wait_for(lambda text: "1 of 1 running" in text)
        run.press(b"\x03")
        run.wait_for(lambda text: re.search(r"(?s)report.html .*\nprompt>$", text))
        assert run.shows_cursor()
        assert "running" not in run.text
        assert "failed: stopped by Ctrl-C (SIGINT)" in run.text
        run.press(b"exit $?\r")
        assert run.end() == 130


def test_the_last_line_before_a_pause_is_shown(job: Any) -> None:
    """A line whose end may start a secret is shown while the command is silent."""
    job.document["secrets"] = {"token": "open-sesame"}
    job.role("w", "echo /data/checkpoints/the-last-checkpoint-o; sleep 100")
    argv = [sys.executable, "-m", "pairun", "run", "--grace", "2s", str(job.save())]
    with subprocess.Popen(argv, cwd=job.folder, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert any("| /data/checkpoints/the-last-checkpoint-o\n" in line for line in run.stdout)
        run.send_signal(signal.SIGTERM)
        run.stdout.read()
    assert run.returncode == 143


def test_a_reader_that_ends_stops_the_run(job: Any) -> None:
    """`pairun run | head` ends with 141, without a trace, and no instance is left."""
    job.role("w", f"echo {job.mark}; sleep 100 # {job.mark}")
    argv = [sys.executable, "-m", "pairun", "run", "--grace", "2s", str(job.save())]
    with subprocess.Popen(
        argv, cwd=job.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        while job.mark.encode() not in run.stdout.readline():
            pass
        run.stdout.close()
        said = run.stderr.read().decode()
        assert run.wait() == 141, said
    assert "Traceback" not in said
    assert "standard output cannot be written: Broken pipe; the log files in" in said
    assert not job.running()


def test_fifty_instances_stay_readable(job: Any, terminal: Any) -> None:
    """On 80 columns and 24 lines a few instances have a line, and the others are counted."""
    job.role("w", "sleep 1", instances=50)
    job.document["taskRoles"]["w"]["completion"] = {"minSucceededInstances": -1}
    with terminal("--no-namespace") as run:
        run.wait_for(lambda text: re.search(r"and \d\d more: .*\n.*of 50 running", text))
        foot = run.rows[
            next(n for n, row in enumerate(run.rows) if re.match(r"w-\d+ +(init|runtime) ", row)) :
        ]
        assert len([row for row in foot if row]) == 9
        assert "of 50 running" in foot[8]
        assert run.end() == 0, run.text
    recap = run.text.partition("\ninstance ")[2]
    assert len(recap.split("\n")) < 15
    assert re.search(r"w-0 \+49 ", recap)

"""``init.log``: what init prints is kept, whatever becomes of init or of those who read it."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from pairun.base.processes import limit_cores

ROOT = pathlib.Path(__file__).parents[2]
UID = "pod-1"
WAIT_S = 40.0
MANY = 3000


class Init:
    """An init container that is a process of this machine."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.volume = folder / "pai"
        self.logs = self.volume / "logs" / UID
        self.log = self.logs / "init.log"
        self.config = folder / "config"
        self.config.mkdir()
        self.started: list[subprocess.Popen[bytes]] = []

    @property
    def kept(self) -> bytes:
        """The log without the variables at the end of each run that succeeded."""
        return re.sub(rb"\nruntime_env.sh has:\n(?:export .*\n)*", b"", self.log.read_bytes())

    def script(self, text: str) -> None:
        """Let a task of the init playbook run a script."""
        task = {"before": "barrier", "id": "work", "name": "W", "cmd": {"script": text}}
        (self.config / "init.yaml").write_text(json.dumps({"phase": "init", "patches": [task]}))

    def start(
        self,
        stdout: int = subprocess.PIPE,
        stderr: int = subprocess.PIPE,
        env: dict[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start it."""
        given = {
            "PATH": os.environ["PATH"], "PAIRUN_PAI_DIR": str(self.volume), "FC_POD_UID": UID,
            "PAI_CONFIG_DIR": str(self.config), "PAIRUN_HOST_IP": "10.0.0.9",
            "RUNTIME_CONFIG": json.dumps({"commands": ["true"]}), **(env or {}),
        }  # fmt: skip
        process = subprocess.Popen(
            [sys.executable, "-m", "pairun", "init"], env=given, cwd=ROOT, stdout=stdout,
            stderr=stderr, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        self.started.append(process)
        return process

    def run(self, **env: str) -> tuple[int, bytes, bytes]:
        """Run it to its end: exit code, standard output, standard error."""
        process = self.start(env=env)
        out, err = process.communicate(timeout=WAIT_S)
        return process.returncode, out, err

    def wait_for(self, text: str) -> None:
        """Wait until the log holds a text."""
        stop = time.monotonic() + WAIT_S
        while not (self.log.exists() and text in self.log.read_text()):
            assert time.monotonic() < stop
            time.sleep(0.02)


@pytest.fixture
def init(tmp_path: pathlib.Path) -> Iterator[Init]:
    """An init container."""
    made = Init(tmp_path)
    yield made
    for process in made.started:
        process.kill()
        process.communicate()


def test_both_streams(init: Init) -> None:
    """Each stream is passed on as it is, and both stand in the log."""
    code, out, err = init.run(RUNTIME_CONFIG="commands: 7")
    assert code == 1
    assert out == b""
    assert b"error[PR712]" in err
    # The folder is not there yet when the settings are wrong, and the volume may be anybody's.
    assert not init.volume.exists()
    (init.volume / "logs").mkdir(parents=True)
    assert init.run(RUNTIME_CONFIG="commands: 7") == (code, out, err)
    assert init.log.read_bytes() == err


@pytest.mark.slow
def test_a_later_run_appends(init: Init) -> None:
    """A Pod that starts again keeps what it and the command printed; other files are put aside."""
    _, first, _ = init.run()
    (init.logs / "user-all").mkdir()
    (init.logs / "user-all" / "current").write_text("old")
    (init.logs / "runtime.log").write_text("old")
    journal = (init.logs / "journal.jsonl").read_bytes()
    _, second, _ = init.run()
    assert init.kept == first + second
    assert (init.logs / "user-all" / "current").read_text() == "old"
    assert (init.logs / "prelog_1" / "runtime.log").read_text() == "old"
    (init.logs / "user-stdout").symlink_to("/")
    assert (init.logs / "journal.jsonl").read_bytes().startswith(journal)
    (init.logs / "runtime.log").write_text("newer")
    init.run()
    assert (init.logs / "prelog_2" / "runtime.log").read_text() == "newer"
    assert (init.logs / "prelog_2" / "user-stdout").is_symlink()
    init.run()
    assert not (init.logs / "prelog_3").exists()


def test_the_log_ends_with_the_environment(init: Init) -> None:
    """The last lines of init.log, and of no stream, are ``runtime_env.sh``; it has no secret."""
    secrets = init.config / "secrets.yaml"
    secrets.write_text("token: s3cr3t-s3cr3t\n")
    init.script('echo "TOKEN=s3cr3t-s3cr3t\nMINE=1" > $PAI_RUNTIME_DIR/env')
    code, out, err = init.run(PAI_RUNTIME_DIR=str(init.volume / "runtime.d"))
    assert code == 0
    environment = (init.volume / "runtime.d/runtime_env.sh").read_text()
    assert "MINE='1'" in environment
    assert init.log.read_text().endswith(f"\nruntime_env.sh has:\n{environment}")
    assert "s3cr3t" not in init.log.read_text()
    assert b"MINE" not in out + err


def test_much_output(init: Init) -> None:
    """Nothing is lost at the end, and nothing comes twice."""
    init.script(f"i=0; while [ $i -lt {MANY} ]; do echo line $i; i=$((i+1)); done")
    code, out, err = init.run()
    assert (code, err) == (0, b"")
    assert init.kept == out
    assert [x.split()[-1] for x in out.decode().splitlines() if "| line" in x] == [
        str(n) for n in range(MANY)
    ]


def test_killed(init: Init) -> None:
    """When the kernel kills the phase, what it printed before is shown and kept, with the reason."""
    init.script("echo about to die; kill -KILL $(ps -o ppid= -p $(ps -o ppid= -p $$)); sleep 100")
    code, out, err = init.run()
    assert code == 128 + signal.SIGKILL
    assert b"killed by SIGKILL" in err
    assert init.log.read_bytes() == out + err


def test_stopped(init: Init) -> None:
    """A stop reaches the tasks, once, and the exit code is that of the phase."""
    init.script("trap 'echo stopping; exit 1' TERM; echo ready; while :; do sleep 0.05; done")
    process = init.start()
    init.wait_for("ready")
    process.terminate()
    assert process.wait(WAIT_S) == 143
    assert init.log.read_text().count("stopping") == 1
    assert "init phase: signal" in init.log.read_text()


def test_nobody_reads(init: Init) -> None:
    """A reader that goes away, or a full disk behind the stream, costs the log nothing."""
    init.script("echo first; sleep 0.3; echo second")
    for stream in ("pipe", "/dev/full"):
        if stream == "pipe":
            reader, writer = os.pipe()
            os.close(reader)
        else:
            writer = os.open(stream, os.O_WRONLY)
        process = init.start(stdout=writer, stderr=subprocess.DEVNULL)
        os.close(writer)
        assert process.wait(WAIT_S) == 0
        text = init.kept.decode()
        assert "second" in text
        assert text.endswith("\n")
        assert "init phase: success" in text.splitlines()[-1]


def test_a_reader_that_hangs(init: Init) -> None:
    """A reader that takes nothing does not keep a stop from the tasks."""
    init.script(
        "trap 'echo > \"$PAI_CONFIG_DIR/heard\"; exit 1' TERM; echo ready; yes | head -c 300000; "
        "while :; do sleep 0.05; done"
    )
    process = init.start(stderr=subprocess.DEVNULL)
    init.wait_for("ready")
    process.terminate()
    stop = time.monotonic() + WAIT_S
    while not (init.config / "heard").exists():
        assert time.monotonic() < stop
        time.sleep(0.02)


@pytest.mark.slow
def test_a_log_that_cannot_be_written(init: Init) -> None:
    """A log that is something else costs the log, and says so once; nothing is followed."""
    init.run()
    outside = init.volume.parent / "outside"
    init.log.unlink()
    init.log.symlink_to(outside)
    code, out, err = init.run()
    assert code == 0
    assert b"init phase: success" in out
    assert err.count(b"cannot write a log") == 1
    assert not outside.exists()


def test_a_review_writes_nothing(init: Init) -> None:
    """`--dry-run` leaves no log."""
    env = {"PATH": os.environ["PATH"], "PAIRUN_PAI_DIR": str(init.volume), "FC_POD_UID": UID,
           "RUNTIME_CONFIG": json.dumps({"commands": ["true"]})}  # fmt: skip
    (init.volume / "logs").mkdir(parents=True)
    done = subprocess.run(
        [sys.executable, "-m", "pairun", "init", "--dry-run"], env=env, cwd=ROOT,
        capture_output=True, timeout=WAIT_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert list((init.volume / "logs").iterdir()) == []


def test_no_core_dump(init: Init) -> None:
    """No process of init, nor what it starts, leaves a core dump: its memory has secrets."""
    init.script("grep core /proc/$PPID/limits; ulimit -c")
    before = limit_cores((1024 * 1024, limit_cores()[1]))
    try:
        process = init.start()
    finally:
        limit_cores(before)
    out, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0
    assert re.search(r"Max core file size +0 ", out.decode())
    assert re.search(r"\| 0$", out.decode(), re.MULTILINE)

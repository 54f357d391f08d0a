"""Logs: what the command prints reaches the container's streams and the files, whatever happens."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import IO, Any

import pytest

from pairun.runtime.logs import dated
from pairun.runtime.sinks import SharedFile
from pairun.volume.door import Door
from pairun.volume.logfile import AppendedFile, RotatedLog, parse_size, tai64n
from tests.stopwatch import Stopwatch

DRIVER = """
import os, sys
import pairun.runtime.main as m, pairun.runtime.logs as logs, pairun.runtime.sinks as sinks
exec(os.environ.pop("TEST_PATCH", ""))
sys.exit(m.main(sys.argv[1], m.Vault()))
"""
PYTHON = sys.executable
DATE = r"\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [A-Z+\d-]+ \d{4}\]"
WAIT_S = 30.0

Launch = Callable[..., "subprocess.Popen[bytes]"]

FLOOD = """
import hashlib, os, sys, threading
def flood(fd, name):
    for n in range(int(sys.argv[1])):
        text = f"{name} {n} " + "x" * (n * 7919 % 300)
        line = f"{text} {hashlib.md5(text.encode()).hexdigest()}\\n".encode()
        cut = n * 31 % len(line)
        for piece in (line[:cut], line[cut:]) if n % 3 else (line,):
            while piece:
                piece = piece[os.write(fd, piece):]
threads = [threading.Thread(target=flood, args=a) for a in ((1, "out"), (2, "err"))]
for t in threads: t.start()
for t in threads: t.join()
"""


@pytest.fixture
def folder(volume: Any) -> pathlib.Path:
    """The log directory of the Pod, as init leaves it."""
    path: pathlib.Path = volume.root / "logs" / "pod-1"
    path.mkdir(parents=True)
    return path


@pytest.fixture
def launch(volume: Any) -> Iterator[Launch]:
    """Starts the phase with streams of the test's own."""
    started: list[subprocess.Popen[bytes]] = []

    def start(
        stdout: int | IO[bytes] = subprocess.PIPE,
        stderr: int | IO[bytes] = subprocess.PIPE,
        **env: str,
    ) -> subprocess.Popen[bytes]:
        argv = [PYTHON, "-c", DRIVER, str(volume.root)]
        process = subprocess.Popen(
            argv, stdout=stdout, stderr=stderr, env={**os.environ, "FC_POD_UID": "pod-1", **env}
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def kept(folder: pathlib.Path, name: str) -> bytes:
    """What a log holds."""
    return b"".join(p.read_bytes() for p in sorted((folder / name).iterdir()))


def read_until(stream: IO[bytes] | None, end: bytes) -> bytes:
    """Read until these bytes have come."""
    assert stream is not None
    data = b""
    until = time.monotonic() + WAIT_S
    while end not in data:
        assert time.monotonic() < until, data
        if select.select([stream], [], [], 1.0)[0]:
            piece = os.read(stream.fileno(), 65536)
            assert piece, data
            data += piece
    return data


def test_layout(volume: Any, folder: pathlib.Path, launch: Launch) -> None:
    """The files have the names, modes and lines that OpenPAI's log manager and portal know."""
    volume.command("echo to out; echo to err >&2")
    phase = launch(TZ="UTC")
    out, err = phase.communicate(timeout=WAIT_S)
    assert phase.returncode == 0
    assert out == b"to out\n"
    assert b"to err\n" in err
    for name, content in (("user-stdout", b"to out\n"), ("user-stderr", b"to err\n")):
        assert [p.name for p in (folder / name).iterdir()] == ["current"]
        assert (folder / name / "current").read_bytes() == content
        assert (folder / name).stat().st_mode & 0o555 == 0o555
        assert (folder / name / "current").stat().st_mode & 0o444 == 0o444
    assert sorted(kept(folder, "user-all").splitlines()) == [b"to err", b"to out"]
    lines = (folder / "runtime.log").read_text().splitlines()
    for line in lines:
        assert re.fullmatch(DATE + r" \[openpai-runtime\] .+", line)
    ours = [line.split("[openpai-runtime] ")[1] for line in lines]
    marks = [line for line in ours if line.startswith("[INFO]")]
    assert marks == [
        "[INFO] Starting to exec precommands", "[INFO] Precommands finished",
        "[INFO] USER COMMAND START", "[INFO] USER COMMAND END",
    ]  # fmt: skip
    # and every other line is what people see
    shown = [line for line in err.decode().splitlines() if line.startswith("[pairun] ")]
    assert [line.removeprefix("[pairun] ") for line in shown] == [
        line for line in ours if line not in marks
    ]


def test_a_date_as_date_prints_it() -> None:
    """The date of a line is what date(1) prints."""
    printed = subprocess.run(
        ["date", "-d", "@1763644775"], env={**os.environ, "LC_ALL": "C"}, stdout=-1, check=True
    )
    expected = f"[{printed.stdout.decode().strip()}] [openpai-runtime] x\n"
    assert dated("x", 1763644775.9) == expected


def test_bytes_come_as_they_are_printed(
    volume: Any, folder: pathlib.Path, launch: Launch, eventually: Any
) -> None:
    """A prompt and a progress bar do not wait for a newline, on the stream and in its file."""
    fifo = folder / "fifo"
    os.mkfifo(fifo)
    volume.command(f"printf 'name? '; printf ' 10%%\\r 20%%' >&2; read -r x < {fifo}; echo $x")
    phase = launch()
    assert read_until(phase.stdout, b"? ") == b"name? "
    read_until(phase.stderr, b" 10%\r 20%")
    eventually(lambda: kept(folder, "user-stdout") == b"name? ")
    eventually(lambda: kept(folder, "user-stderr") == b" 10%\r 20%")
    # where both streams meet, it waits for its line, but not for ever
    eventually(lambda: b"name? " in kept(folder, "user-all"))
    fifo.write_text("you\n")
    assert phase.communicate(timeout=WAIT_S)[0] == b"you\n"
    assert kept(folder, "user-stdout") == b"name? you\n"


def _whole(data: bytes, name: bytes, count: int) -> None:
    """All lines of a stream are there, in order, none torn."""
    lines = [line for line in data.split(b"\n") if line.startswith(name + b" ")]
    assert [int(line.split()[1]) for line in lines] == list(range(count))
    for line in lines:
        text, digest = line.rsplit(b" ", 1)
        assert hashlib.md5(text).hexdigest() == digest.decode()


def test_two_floods(volume: Any, folder: pathlib.Path, launch: Launch, tmp_path: Any) -> None:
    """Of two streams that flood at once every byte is kept, and no line of one tears the other's."""
    (tmp_path / "flood.py").write_text(FLOOD)
    volume.command(f"exec {PYTHON} {tmp_path}/flood.py 20000")
    phase = launch()
    out, err = phase.communicate(timeout=WAIT_S * 2)
    assert phase.returncode == 0
    _whole(out, b"out", 20000)
    _whole(err, b"err", 20000)
    assert kept(folder, "user-stdout") == out
    _whole(kept(folder, "user-stderr"), b"err", 20000)
    both = kept(folder, "user-all")
    _whole(both, b"out", 20000)
    _whole(both, b"err", 20000)
    assert both.count(b"\n") == 40000


def test_streams_share_whole_lines(tmp_path: pathlib.Path) -> None:
    """A line waits for its end; one that could not wait is never continued by another stream."""
    path = tmp_path / "all"
    shared = SharedFile(AppendedFile(Door(str(tmp_path)), str(path), print))
    a, b = shared.lines(), shared.lines()
    a.take(b"one ")
    b.take(b"two\nthree ")
    a.take(b"line\n")
    assert path.read_bytes() == b"two\none line\n"
    assert 0 < (b.due_s() or 0) <= 1
    b.flush()
    a.take(b"four\n")
    b.take(b"is late\n")
    assert path.read_bytes() == b"two\none line\nthree \nfour\nis late\n"
    a.take(b"x" * 70_000)
    assert path.stat().st_size > 70_000
    assert a.due_s() is None


def test_rotation(volume: Any, folder: pathlib.Path, launch: Launch) -> None:
    """A full file is put aside under multilog's name, in whole lines, and one such file is kept."""
    volume.command("for i in $(seq 1 2000); do echo line $i; done")
    before = time.time()
    phase = launch(PAIRUN_LOG_BYTES="8Ki")
    out, _ = phase.communicate(timeout=WAIT_S)
    assert len(out.splitlines()) == 2000
    for name in ("user-stdout", "user-all"):
        files = sorted(p.name for p in (folder / name).iterdir())
        assert len(files) == 2
        assert files[1] == "current"
        assert re.fullmatch(r"@[0-9a-f]{24}\.s", files[0])
        moment = int(files[0][1:17], 16) - 2**62 - 10
        assert before - 1 <= moment <= time.time() + 1
        rotated = (folder / name / files[0]).read_bytes()
        assert 7000 < len(rotated) <= 8192
        assert rotated.endswith(b"\n")
        assert out.endswith(kept(folder, name))
        assert (folder / name / "current").stat().st_size <= 8192


def test_a_line_longer_than_a_file(tmp_path: pathlib.Path) -> None:
    """What has no newline fills a file to its last byte."""
    log = RotatedLog(Door(str(tmp_path)), str(tmp_path / "log"), 4096, print)
    log.write(b"short\n")
    log.write(b"x" * 10_000)
    sizes = [p.stat().st_size for p in sorted((tmp_path / "log").iterdir())]
    assert sizes == [4096, 10_006 - 8192]
    log.write(b"y" * 2000)
    log.write(b"\n")
    log.write(b"z" * 400)
    # a line that would not fit begins the next file
    assert (tmp_path / "log" / "current").read_bytes() == b"z" * 400


def test_names_and_sizes() -> None:
    """A moment is labelled as tai64n(8) does it, a size is written as in Kubernetes."""
    assert tai64n(1.5) == "@400000000000000b1dcd6500"
    assert parse_size("268435456") == parse_size("256Mi") == 256 << 20
    assert parse_size("1G") == 10**9
    assert [parse_size(t) for t in ("", "4095", "1MiB", "-1", "1.5M", "many")] == [None] * 6


def test_unusable_size(volume: Any, folder: pathlib.Path, launch: Launch) -> None:
    """A size that is none is said, and the usual one holds."""
    volume.command("exit 3")
    phase = launch(PAIRUN_LOG_BYTES="big")
    _, err = phase.communicate(timeout=WAIT_S)
    assert phase.returncode == 3
    assert b"PAIRUN_LOG_BYTES='big' is not a size" in err
    assert b"PAIRUN_LOG_BYTES='big' is not a size" in (folder / "runtime.log").read_bytes()


@pytest.mark.parametrize("end", ["kill -9 $$", "exit 9", "kill -TERM 0; sleep 9"])
def test_last_words(volume: Any, folder: pathlib.Path, launch: Launch, end: str) -> None:
    """What was printed before a violent end is there, without its newline too."""
    volume.command(f"seq 1 50000; printf 'last words'; printf 'and of this' >&2; {end}")
    phase = launch()
    out, err = phase.communicate(timeout=WAIT_S)
    assert phase.returncode != 0
    assert out.endswith(b"50000\nlast words")
    assert kept(folder, "user-stdout") == out
    assert b"and of this" in err
    assert kept(folder, "user-stderr") == b"and of this"
    both = kept(folder, "user-all")
    assert b"last words" in both
    assert b"and of this" in both
    assert len(both) - len(out) - len(b"and of this") in (0, 1)


def test_a_stop_in_the_middle(volume: Any, folder: pathlib.Path, launch: Launch) -> None:
    """A command that floods when it is told to stop loses nothing of what it printed."""
    volume.command(
        "trap 'echo saving; exit 5' TERM; echo ready; i=0\n"
        "while :; do i=$((i+1)); echo line $i; done"
    )
    phase = launch()
    assert phase.stdout is not None
    out = read_until(phase.stdout, b"line 500\n")
    phase.send_signal(signal.SIGTERM)
    out += phase.communicate(timeout=WAIT_S)[0]
    assert phase.returncode == 5
    assert out.endswith(b"saving\n")
    lines = out.split(b"\n")[1:-2]
    assert lines == [b"line %d" % n for n in range(1, len(lines) + 1)]
    assert kept(folder, "user-stdout") == kept(folder, "user-all") == out


@pytest.fixture
def small_disk(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """The log directory on a disk of a megabyte of its own."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "logs", str(folder)]
    if os.getuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("we may not mount here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk(volume: Any, small_disk: pathlib.Path, launch: Launch) -> None:
    """A full disk costs what does not fit, which is said; with space again logs go on."""
    go = volume.root / "go"
    os.mkfifo(go)
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * 600_000)
    volume.command(f"seq 1 200000; read -r x < {go}; echo afterwards; exit 4")
    phase = launch()
    out = read_until(phase.stdout, b"\n200000\n")
    filler.unlink()
    time.sleep(0.3)  # the time for which a disk that failed is left alone
    go.write_text("go\n")
    rest, err = phase.communicate(timeout=WAIT_S)
    out += rest
    assert phase.returncode == 4
    assert out == b"".join(b"%d\n" % n for n in range(1, 200001)) + b"afterwards\n"
    stdout, both = kept(small_disk, "user-stdout"), kept(small_disk, "user-all")
    assert stdout.endswith(b"afterwards\n")
    assert b"No space left on device" in err
    for name, data in (("user-stdout", stdout), ("user-all", both)):
        found = re.search(rf"not logged: (\d+) bytes of \S*{name}\n".encode(), err)
        assert found is not None
        assert int(found[1]) == len(out) - len(data) > 0
        assert found[0] in (small_disk / "runtime.log").read_bytes()


def test_a_disk_that_cannot_be_written(
    volume: Any, small_disk: pathlib.Path, launch: Launch
) -> None:
    """Where no log can be kept the job runs as ever, and one line says why."""
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    volume.command("echo fine; exit 6")
    phase = launch()
    out, err = phase.communicate(timeout=WAIT_S)
    assert (phase.returncode, out) == (6, b"fine\n")
    assert err.count(b"[pairun] cannot keep logs in ") == 1
    assert b"Read-only file system" in err


def test_without_a_log_directory(volume: Any, launch: Launch) -> None:
    """Without its directory nothing is kept, and nothing else changes."""
    volume.command("echo fine; exit 6")
    phase = launch()
    out, err = phase.communicate(timeout=WAIT_S)
    assert (phase.returncode, out) == (6, b"fine\n")
    assert err.count(b"[pairun] cannot keep logs in ") == 1
    assert not (volume.root / "logs").exists()


def test_nothing_in_the_directory_is_trusted(
    volume: Any, folder: pathlib.Path, launch: Launch, tmp_path: pathlib.Path
) -> None:
    """A link is not followed, a pipe is not waited for, and the other logs are kept."""
    (tmp_path / "elsewhere").mkdir()
    (folder / "user-stdout").symlink_to(tmp_path / "elsewhere")
    (folder / "user-stderr").mkdir()
    os.mkfifo(folder / "user-stderr" / "current")
    volume.command("echo out; echo err >&2")
    phase = launch()
    _, err = phase.communicate(timeout=WAIT_S)
    assert phase.returncode == 0
    assert b"cannot keep logs" in err
    assert b"it is not a regular file" in err
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert sorted(kept(folder, "user-all").split()) == [b"err", b"out"]


def test_nobody_reads_the_stream(volume: Any, folder: pathlib.Path, launch: Launch) -> None:
    """That the container's stream was closed costs neither the job nor its files."""
    volume.command("seq 1 100000; echo end; exit 7")
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as stream:
        phase = launch(stdout=stream)
    _, err = phase.communicate(timeout=WAIT_S)
    assert phase.returncode == 7
    assert kept(folder, "user-stdout").endswith(b"100000\nend\n")
    assert b"standard output cannot be written: Broken pipe" in err
    assert re.search(rb"not written: \d+ bytes of standard output", err)


def test_nobody_at_all(volume: Any, launch: Launch) -> None:
    """Where neither reader nor file is left the command is told, as without us (SIGPIPE)."""
    volume.command("exec yes")
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as stream:
        phase = launch(stdout=stream)
    phase.communicate(timeout=WAIT_S)
    assert phase.returncode == 128 + signal.SIGPIPE


def test_a_slow_reader(volume: Any, folder: pathlib.Path, launch: Launch) -> None:
    """A reader who takes his time holds up the writer of that stream and nobody else."""
    volume.command(
        # the writer ignores the signal from its first moment
        "trap '' USR1; seq 1 2000000 & trap 'echo heard >&2' USR1; seq 1 20000 >&2\n"
        "echo ready >&2; wait; wait; exit 3"
    )
    phase = launch()
    read_until(phase.stderr, b"\nready\n")
    phase.send_signal(signal.SIGUSR1)
    read_until(phase.stderr, b"heard\n")
    assert phase.poll() is None
    # as without us: what is not read is not printed
    assert len(kept(folder, "user-stdout")) < 4 << 20
    out, _ = phase.communicate(timeout=WAIT_S)
    assert phase.returncode == 3
    assert out.endswith(b"\n2000000\n")
    assert kept(folder, "user-stdout") == out


def test_a_reader_who_never_comes(volume: Any, folder: pathlib.Path, launch: Launch) -> None:
    """At the end a stuck reader is waited for a while; the files have all of it."""
    volume.command("seq 1 40000; exit 2")
    reader, writer = os.pipe()
    with open(reader, "rb"), open(writer, "wb") as stream:
        phase = launch(stdout=stream, TEST_PATCH="logs.wait_for.__defaults__ = (None, 0.5)")
        _, err = phase.communicate(timeout=WAIT_S)
    expected = b"".join(b"%d\n" % n for n in range(1, 40001))
    assert phase.returncode == 2
    assert kept(folder, "user-stdout") == kept(folder, "user-all") == expected
    found = re.search(rb"not written: (\d+) bytes of standard output", err)
    assert found is not None
    # a pipe holds 64 KiB
    assert len(expected) - 65536 <= int(found[1]) < len(expected)


def test_a_stuck_standard_error_keeps_no_signal(
    volume: Any, folder: pathlib.Path, launch: Launch
) -> None:
    """Our own lines wait for nobody: a stop comes through while standard error is full."""
    # the shell has nothing in the foreground of whose end it would print something, and be stuck
    volume.command("trap 'exit 8' TERM; seq 1 1000000 >&2 & echo ready; wait")
    reader, writer = os.pipe()
    with open(reader, "rb"), open(writer, "wb") as stream:
        phase = launch(stderr=stream, PAIRUN_GRACE="4s")
        read_until(phase.stdout, b"ready\n")
        with Stopwatch() as watch:
            phase.send_signal(signal.SIGTERM)
            phase.communicate(timeout=WAIT_S)
    assert phase.returncode == 8
    assert watch.within(4.5), watch
    assert b"received SIGTERM" in (folder / "runtime.log").read_bytes()


def test_a_hundred_megabytes_on_one_line(volume: Any, folder: pathlib.Path, launch: Launch) -> None:
    """A line without an end passes with little memory."""
    volume.command(
        "head -c 104857600 /dev/zero | tr '\\0' x; printf done >&2\n"
        f"grep VmHWM /proc/$PPID/status > {folder}/memory"
    )
    with open(os.devnull, "wb") as null:
        phase = launch(stdout=null)
        phase.communicate(timeout=WAIT_S * 2)
    assert phase.returncode == 0
    for name in ("user-stdout", "user-all"):
        assert len(kept(folder, name).replace(b"\ndone\n", b"").replace(b"done", b"")) in (
            104857600, 104857601,
        )  # fmt: skip
    assert int((folder / "memory").read_text().split()[1]) < 40_000


def test_bytes_are_bytes(volume: Any, folder: pathlib.Path, launch: Launch) -> None:
    """What is no text passes as it is."""
    data = bytes(range(256)) * 300
    (volume.root / "data").write_bytes(data)
    volume.command(f"cat {volume.root}/data")
    out, _ = launch().communicate(timeout=WAIT_S)
    assert out == data
    assert kept(folder, "user-stdout") == kept(folder, "user-all") == data


def test_secrets_are_masked_everywhere(
    volume: Any, folder: pathlib.Path, launch: Launch, tmp_path: pathlib.Path
) -> None:
    """A secret reaches no stream and no file, however its writer cuts it."""
    (volume.files / "secrets.json").write_text(
        json.dumps({"schema": 2, "values": {}, "redact": ["hunter2hunter2"]})
    )
    program = tmp_path / "print.py"
    program.write_text(
        "import os, time\n"
        "for fd in (1, 2):\n"
        "    for piece in (b'a hunt', b'er2hun', b'ter2 b\\n', b'hunter2hunter2', b' at the end: hunter2'):\n"
        "        os.write(fd, piece)\n"
        "        time.sleep(0.05)\n"
    )
    volume.command(f"exec {PYTHON} {program}")
    phase = launch()
    out, err = phase.communicate(timeout=WAIT_S)
    expected = b"a ****** b\n****** at the end: hunter2"
    assert out == kept(folder, "user-stdout") == kept(folder, "user-stderr") == expected
    assert expected.split(b"\n")[1] in err
    assert b"hunter2hunter2" not in err + kept(folder, "user-all")
    assert kept(folder, "user-all").count(b"******") == 4


def test_a_daemon_that_holds_the_pipe(volume: Any, folder: pathlib.Path, launch: Launch) -> None:
    """What a daemon prints until it is ended is kept, and it does not keep us."""
    # not waited for, in a session of its own, and it has a line that it never ends
    volume.command(
        "setsid bash -c 'trap \"\" HUP; printf daemon; exec sleep 100' & echo out; sleep 0.5; exit 3"
    )
    out, _ = (phase := launch()).communicate(timeout=WAIT_S)
    assert phase.returncode == 3
    assert sorted(out) == sorted(b"out\ndaemon")
    assert b"daemon" in kept(folder, "user-all")


def test_a_daemon_that_floods(volume: Any, folder: pathlib.Path, launch: Launch) -> None:
    """Who floods for ever holds up neither our lines nor our end."""
    volume.command("setsid yes & sleep 0.5; exit 3")
    with open(os.devnull, "wb") as null:
        phase = launch(stdout=null, PAIRUN_LOG_BYTES="1Mi")
        phase.communicate(timeout=WAIT_S)
    assert phase.returncode == 3
    assert kept(folder, "user-all").endswith(b"y\n")


def test_streams_that_are_closed_early(volume: Any, folder: pathlib.Path, launch: Launch) -> None:
    """A command that closes its streams runs on."""
    volume.command(f"echo first; exec >&- 2>&-; sleep 0.3; touch {folder}/ran; exit 4")
    phase = launch()
    out, _ = phase.communicate(timeout=WAIT_S)
    assert (phase.returncode, out) == (4, b"first\n")
    assert (folder / "ran").exists()


def test_a_second_run_in_the_same_pod(volume: Any, folder: pathlib.Path, launch: Launch) -> None:
    """A phase that starts again goes on with the files, on a line of its own."""
    volume.command("printf 'torn by a kill'")
    launch().communicate(timeout=WAIT_S)
    volume.command("echo again")
    launch().communicate(timeout=WAIT_S)
    assert kept(folder, "user-all") == b"torn by a kill\nagain\n"
    assert kept(folder, "user-stdout") == b"torn by a killagain\n"
    assert (folder / "runtime.log").read_text().count("USER COMMAND START") == 2


def test_output_of_tasks(volume: Any, start: Any) -> None:
    """What tasks and exit handlers print is in runtime.log, with a stamp, and on standard error."""
    folder = volume.root / "logs" / "pod-1"
    folder.mkdir(parents=True)
    answer = {
        "outcome": "success", "exit_code": 0, "message": "", "registered": ["undo"],
        "results": {}, "environment": {},
    }  # fmt: skip
    volume.tasks(
        tasks=answer,
        handlers={"failed": False},
        run={"tasks": "echo of a task; echo its error >&2", "handlers": "echo of a handler"},
    )
    volume.command("echo user")
    running = start(FC_POD_UID="pod-1")
    assert running.end() == 0
    log = (folder / "runtime.log").read_text().splitlines()
    for line in ("tasks ran", "of a task", "its error", "of a handler"):
        assert running.lines.count(line) == 1
        stamped = [each for each in log if each.endswith(f" [openpai-runtime] {line}")]
        assert len(stamped) == 1
        assert re.match(DATE, stamped[0])
    assert running.lines.index("of a task") < running.lines.index("user")
    assert running.lines.index("user") < running.lines.index("of a handler")
    assert not any(line.endswith("user") for line in log)


@pytest.mark.parametrize("kind", ["link", "folder", "fifo"])
def test_the_pipe_takes_the_place_of_what_stands_there(
    volume: Any, start: Any, tmp_path: pathlib.Path, kind: str
) -> None:
    """A leftover at the pipe's path is replaced, and what a link leads to stays as it is."""
    target, place = tmp_path / "target", volume.root / "run" / "runtime_log"
    target.write_text("mine")
    if kind == "link":
        place.symlink_to(target)
    elif kind == "fifo":
        os.mkfifo(place)
    else:
        (place / "inner").mkdir(parents=True)
    volume.command("echo through the pipe > $RUNTIME_LOG_PIPE")
    running = start()
    assert running.end() == 0
    assert "through the pipe" in running.lines
    assert target.read_text() == "mine"


def test_without_a_pipe_its_lines_are_dropped(volume: Any, start: Any) -> None:
    """Where the pipe cannot be made, pairun says so, and whoever writes to it does not fail."""
    (volume.root / "run").rmdir()
    volume.command("echo lost > $RUNTIME_LOG_PIPE; echo went on")
    running = start()
    assert running.end() == 0
    assert "went on" in running.lines
    assert running.got("[pairun] RUNTIME_LOG_PIPE keeps nothing:")


@pytest.mark.parametrize(
    "patch",
    ["sinks.Lines.take = lambda *a: 1 / 0", "sinks.Raw.take = lambda *a: 1 / 0"],
)
def test_a_pump_that_fails(volume: Any, folder: pathlib.Path, launch: Launch, patch: str) -> None:
    """A fault of ours in a pump costs files; the stream goes on, secrets masked, and it is said."""
    (volume.files / "secrets.json").write_text(
        json.dumps({"schema": 2, "values": {}, "redact": ["hunter2hunter2"]})
    )
    volume.command("echo one hunter2hunter2; sleep 0.2; echo two; exit 5")
    phase = launch(TEST_PATCH=patch)
    out, err = phase.communicate(timeout=WAIT_S)
    assert (phase.returncode, out) == (5, b"one ******\ntwo\n")
    assert b"standard output is not logged from here on: ZeroDivisionError" in err


SPLIT = "SENT\\033[31mINEL\\033[0mraw7391"


def test_a_secret_that_colours_split(volume: Any, folder: pathlib.Path, launch: Launch) -> None:
    """Neither a stream, a log nor the termination message shows it; colours stay in streams."""
    (volume.files / "secrets.json").write_text(
        json.dumps({"schema": 2, "values": {}, "redact": ["SENTINELraw7391"]})
    )
    volume.command(f"printf 'a {SPLIT} b\\n'; printf 'c {SPLIT} d\\n' >&2; exit 5")
    phase = launch()
    out, err = phase.communicate(timeout=WAIT_S)
    assert (phase.returncode, out) == (5, b"a ******\033[31m\033[0m b\n")
    assert b"c ******\033[31m\033[0m d\n" in err
    for path in folder.rglob("*"):
        if path.is_file():
            assert b"7391" not in path.read_bytes(), path


NO_THREAD = """
def no(*a): raise RuntimeError("can't start new thread")
import threading; threading.Thread.start = no
"""
NO_MEMORY = """
def no(*a): raise MemoryError()
logs.Pump.__init__ = no
"""


@pytest.mark.parametrize("patch", [NO_THREAD, NO_MEMORY])
def test_what_cannot_be_masked_is_discarded(
    volume: Any, folder: pathlib.Path, launch: Launch, patch: str
) -> None:
    """Without a thread or memory to mask secrets, output is discarded, and the job goes on."""
    (volume.files / "secrets.json").write_text(
        json.dumps({"schema": 2, "values": {}, "redact": ["hunter2hunter2"]})
    )
    volume.command("echo one hunter2hunter2; echo two hunter2hunter2 >&2 && exit 5")
    phase = launch(TEST_PATCH=patch)
    out, err = phase.communicate(timeout=WAIT_S)
    assert (phase.returncode, out) == (5, b"")
    assert b"hunter2" not in err
    assert b"two" not in err
    assert err.count(b"secrets cannot be masked: output is discarded") == 1


@pytest.mark.parametrize("patch", [NO_THREAD, NO_MEMORY])
def test_without_secrets_nothing_is_discarded(
    volume: Any, folder: pathlib.Path, launch: Launch, patch: str
) -> None:
    """Where there is nothing to mask, the command writes to the container's streams itself."""
    volume.command("echo fine; exit 5")
    phase = launch(TEST_PATCH=patch)
    out, err = phase.communicate(timeout=WAIT_S)
    assert (phase.returncode, out) == (5, b"fine\n")
    assert b"output is not logged" in err


def test_many_writers_until_the_end(volume: Any, folder: pathlib.Path, launch: Launch) -> None:
    """Processes that the command left and that end by themselves have their output kept."""
    volume.command("for i in $(seq 1 30); do (sleep 0.$i; echo late $i) & done; exit 0")
    phase = launch()
    out, _ = phase.communicate(timeout=WAIT_S)
    assert phase.returncode == 0
    assert sorted(out.splitlines()) == sorted(b"late %d" % n for n in range(1, 31))
    assert kept(folder, "user-all") == out


def test_the_runtime_log_has_an_end(volume: Any, tmp_path: pathlib.Path) -> None:
    """Tasks that print without end do not fill the disk; our own lines are kept all the same."""
    shared = SharedFile(AppendedFile(Door(str(tmp_path)), str(tmp_path / "log"), print), limit=1000)
    lines = shared.lines()
    for _ in range(100):
        lines.take(b"a line of a task\n" * 10)
    shared.add(b"ours\n")
    data = (tmp_path / "log").read_bytes()
    assert 1000 <= len(data) < 1300
    assert data.endswith(b"ours\n")
    assert shared.file.lost == 100 * 170 - (len(data) - 5)


def test_threads_at_once(tmp_path: pathlib.Path) -> None:
    """Many streams may write to one file at once."""
    log = RotatedLog(Door(str(tmp_path)), str(tmp_path / "log"), 1 << 20, print)
    shared = SharedFile(log)

    def write(name: int) -> None:
        lines = shared.lines()
        for n in range(500):
            lines.take(b"%d " % name)
            lines.take(b"%d\n" % n)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = kept(tmp_path, "log").splitlines()
    for name in range(8):
        mine = [line for line in lines if line.startswith(b"%d " % name)]
        assert mine == [b"%d %d" % (name, n) for n in range(500)]

"""Limits of descriptors, processes and memory: the command's exit code stays, secrets stay masked."""

from __future__ import annotations

import json
import os
import pathlib
import resource
import subprocess
from typing import Any

import pytest

# A limit of file sizes would leave torn files beside the sources.
ENVIRONMENT = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
NO_PROCESS = """
import errno, pairun.runtime.supervisor as s
s.SPAWN_S = 0.0
def spawn(*a, **k): raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), "/program")
os.posix_spawn = spawn
"""


def _limited(driver: list[str], volume: Any, *limits: str) -> subprocess.CompletedProcess[str]:
    """Run the phase to its end under limits of prlimit(1)."""
    return subprocess.run(
        ["prlimit", *limits, *driver, str(volume.root)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False, env=ENVIRONMENT,
    )  # fmt: skip


def _assert_unharmed(done: subprocess.CompletedProcess[str], secret: str) -> None:
    """The exit code is the command's; its output is masked, or discarded with a reason."""
    assert done.returncode == 5, done.stdout
    assert "Traceback" not in done.stdout
    assert secret not in done.stdout
    assert "pairun's own" not in done.stdout
    discarded = "secrets cannot be masked: output is discarded: " in done.stdout
    assert discarded or "printed ******" in done.stdout


@pytest.mark.parametrize(
    "count", [9, 12, 16, *(pytest.param(n, marks=pytest.mark.slow) for n in (10, 11, 13, 14, 20))]
)
def test_descriptors(volume: Any, driver: list[str], secret: str, count: int) -> None:
    """A command runs with few descriptors; what PID 1 needs later remains free."""
    volume.command(f"echo printed {secret}; exit 5")
    done = _limited(driver, volume, f"--nofile={count}:{count}")
    _assert_unharmed(done, secret)
    message = volume.root / "logs" / "local" / "pai-termination-log"
    assert "cannot be written" not in done.stdout or not message.parent.exists()


def test_descriptors_with_tasks_and_handlers(
    volume: Any, driver: list[str], succeeded: Any
) -> None:
    volume.tasks(tasks=succeeded, handlers={"failed": False})
    volume.command("exit 5")
    done = _limited(driver, volume, "--nofile=16:16")
    assert done.returncode == 5, done.stdout
    assert "handlers ran" in done.stdout


def test_too_few_descriptors(volume: Any, driver: list[str]) -> None:
    """Where not even PID 1's own needs fit, it says so before it starts anything."""
    volume.command("echo ran; exit 5")
    done = _limited(driver, volume, "--nofile=7:7")
    assert done.returncode == 1
    assert done.stdout.startswith(
        "error[PR706]: the runtime phase cannot be started: Too many open"
    )
    assert "ran\n" not in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 7, 8])
def test_processes(
    volume: Any, in_namespace: Any, driver: list[str], secret: str, count: int
) -> None:
    """With room for a few processes the command runs, or the reason is given with an id."""
    volume.args(shell="sh")
    volume.command(f"echo printed {secret}; exit 5")
    if os.getuid() != 0:
        pytest.skip("processes of another user can be counted only by root")
    for path in [volume.root, *volume.root.rglob("*")]:
        path.chmod(path.stat().st_mode | 0o055)
    mounted = ["sh", "-c", f'mount --bind {volume.root} /mnt && exec "$@"', "sh"]
    patch = "import pairun.runtime.supervisor as s; s.SPAWN_S = 0.5"
    # the kernel counts the processes of a user
    nobody = ["setpriv", f"--reuid={61235 + count}", "--regid=61235", "--clear-groups"]
    running = in_namespace(
        *mounted, "prlimit", f"--nproc={count}:{count}", *nobody, *driver, "/mnt", TEST_PATCH=patch
    )
    code = running.end()
    text = "\n".join(running.lines)
    assert "Traceback" not in text
    assert "pairun's own" not in text
    assert secret not in text
    assert code == 5 or (code == 126 and "error[PR704]: the command cannot be started" in text)


def test_no_process_for_the_tasks(volume: Any, start: Any, succeeded: Any) -> None:
    """Where no process can be started, an error with an id says so, and nothing is retried for ever."""
    volume.tasks(tasks=succeeded)
    volume.command("echo ran")
    running = start(TEST_PATCH=NO_PROCESS)
    assert running.end() == 255
    assert running.got(
        "error[PR706]: the process of the tasks cannot be started: Resource temporarily unavailable"
    )
    assert not running.got("[pairun] an error of pairun's own")


def test_why_tasks_failed_is_said(volume: Any, start: Any, succeeded: Any, secret: str) -> None:
    """Where the output of tasks is discarded, PID 1 itself says why they failed."""
    failed = {**succeeded, "outcome": "failure", "exit_code": 9, "message": f"no room for {secret}"}
    volume.tasks(tasks=failed, handlers={"failed": False})
    volume.command("echo ran")
    no_pump = "import pairun.runtime.logs as l\ndef no(*a): raise OSError(24, 'none')\nl.Pump = no"
    running = start(TEST_PATCH=no_pump)
    assert running.end() == 9
    assert running.got("[pairun] no room for ******")


@pytest.mark.parametrize(
    "size_mb", [60, 200, *(pytest.param(n, marks=pytest.mark.slow) for n in (50, 80, 100, 150))]
)
def test_address_space(volume: Any, driver: list[str], secret: str, size_mb: int) -> None:
    """With little address space the command runs, and its output is masked or discarded."""
    volume.command(f"echo printed {secret}; exit 5")
    _assert_unharmed(_limited(driver, volume, f"--as={size_mb << 20}"), secret)


def test_stack_of_threads(volume: Any, start: Any) -> None:
    """The threads of PID 1 take little address space."""
    volume.command("grep VmSize /proc/$PPID/status; exit 5")
    soft, _ = resource.getrlimit(resource.RLIMIT_STACK)
    running = start(MALLOC_ARENA_MAX="1")
    assert running.end() == 5
    taken_kb = int(running.got("VmSize")[0].split()[1])
    # five threads with the usual stack of 8 MB alone take 40 MB
    assert taken_kb < 60_000 or soft == resource.RLIM_INFINITY


@pytest.mark.parametrize("limit", ["--fsize=0", "--fsize=100", "--core=0", "--stack=300000"])
def test_other_limits(volume: Any, driver: list[str], secret: str, limit: str) -> None:
    """A limit of file sizes costs logs alone; SIGXFSZ of PID 1's own writes reaches no command."""
    (volume.root / "logs" / "local").mkdir(parents=True)
    volume.command(f"echo printed {secret}; exit 5")
    _assert_unharmed(_limited(driver, volume, limit), secret)


def test_journal_after_little_room(volume: Any, driver: list[str]) -> None:
    """A record that does not fit whole spoils no other record of the journal."""
    folder = pathlib.Path(volume.root) / "logs" / "local"
    folder.mkdir(parents=True)
    volume.command("exit 5")
    _limited(driver, volume, "--fsize=150")
    _limited(driver, volume)
    records = []
    torn = 0
    for line in (folder / "journal.jsonl").read_text().splitlines():
        try:
            records.append(json.loads(line)["type"])
        except ValueError:
            torn += 1
    assert torn <= 1
    assert records[-2:] == ["command_end", "phase_end"] or records[-1] == "phase_end"

"""What is in the memory of PID 1, which stays for as long as the container."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

from tests.pid1.conftest import HERE, WAIT_S, Volume

PROGRAM = f"""
import atexit, json, os, sys
import pairun.runtime.children as children
from pairun.cli.main import main
children.own_command = lambda *args: (
    [sys.executable, {str(HERE / "fake_tasks.py")!r}, *args] if args[0] == "tasks"
    else [sys.executable, "-P", "-m", "pairun", *args]
)
pid_1, listed = os.getpid(), sys.argv[1]
def write():
    if os.getpid() == pid_1:
        with open(listed, "w") as f:
            json.dump(sorted(sys.modules), f)
atexit.register(write)
sys.exit(main(["runtime"]))
"""
ROOMS = {"runtime", "base", "secrets", "errors", "diagnose", "volume", "cli"}
OF_JOBS = {"gathering", "incident", "writerlog", "logfiles", "writers", "podfindings"}
"""Files of the diagnosis that read the logs of a whole job."""

FOREIGN = {
    "attr", "attrs", "ssl", "http", "requests", "urllib3", "jinja2", "yaml", "jsonschema",
    "kubernetes", "socket", "email", "asyncio",
}  # fmt: skip


def test_pid_1_stands_on_its_own_rooms_and_the_standard_library(
    tmp_path: pathlib.Path, volume: Volume, succeeded: dict[str, Any]
) -> None:
    """Tasks, a failed command, its summary and an exit handler leave nothing else in memory."""
    volume.tasks(tasks=succeeded)
    volume.command("echo MemoryError; exit 7\n")
    (volume.files / "secrets.json").write_text(
        '{"schema": 2, "values": {}, "redact": ["Sesame-1234"]}'
    )
    listed = tmp_path / "modules.json"
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(listed)],
        env={**os.environ, "PAIRUN_PAI_DIR": str(volume.root), "FC_POD_UID": "pod"},
        capture_output=True, text=True, timeout=WAIT_S, check=False,
    )  # fmt: skip
    assert ended.returncode == 7, ended.stderr
    names = json.loads(listed.read_text())
    assert not {n.partition(".")[0] for n in names} & FOREIGN
    assert {n.split(".")[1] for n in names if n.startswith("pairun.")} <= ROOMS
    assert not {n.removeprefix("pairun.diagnose.") for n in names} & OF_JOBS


def test_the_process_of_tasks_starts_without_what_few_tasks_need() -> None:
    """OpenSSL, sockets and tracebacks cost each Pod's start milliseconds."""
    heavy = FOREIGN - {"attr", "attrs"} | {"hashlib", "traceback", "shlex", "tempfile"}
    program = "import sys, pairun.cli.tasks; print(*sys.modules)"
    listed = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert not set(listed.split()) & heavy

"""Runs an incident in namespaces of its own and keeps what it prints, without this machine's names.

Root on Linux: each incident has its own processes, network, host names and mounts, so that ports
are free and nothing that hangs survives it.
"""

from __future__ import annotations

import datetime
import glob
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import NamedTuple

from tests.incidents.incident import Incident, Outside, Process

HERE = os.path.dirname(os.path.abspath(__file__))
JOB = "/workspace"
"""What the job's folder is called in the recorded texts."""
HEAD_BYTES, TAIL_BYTES = 12 * 1024, 36 * 1024
"""A longer file loses whole lines between its head and its tail."""
_CGROUPS = "/sys/fs/cgroup/memory"


class Line(NamedTuple):
    """A line of a process's output, and when it came."""

    time_s: float
    process: str
    text: bytes


def record(name: str, incident: Incident, folder: str, venv: str) -> None:
    """Run the incident and replace the folder by its outputs and expected.json."""
    with tempfile.TemporaryDirectory(prefix="pairun-incident-") as scratch:
        job, logs = os.path.join(scratch, "job"), os.path.join(scratch, "logs")
        shutil.copytree(os.path.join(HERE, "programs"), job)
        os.mkdir(logs)
        if incident.files:
            incident.files(job)
        inside = ["unshare", "--net", "--uts", "--mount", "--ipc", "--pid", "--fork"]
        inside += ["--kill-child", "--mount-proc", sys.executable, "-m", "tests.incidents"]
        subprocess.run([*inside, "--inside", name, job, logs, venv], check=True)
        for left in glob.glob(f"{_CGROUPS}/{os.path.basename(scratch)}-*"):
            os.rmdir(left)
        for kept in incident.folders:
            shutil.copytree(os.path.join(job, kept), logs, dirs_exist_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        for path in _files(logs):
            target = os.path.join(folder, os.path.relpath(path, logs))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(path, "rb") as f:
                text = shorten(neutral(f.read(), job, venv))
            if text and incident.form == "gz":
                target, text = f"{target}.gz", gzip.compress(text, mtime=0)
            if text:
                with open(target, "wb") as f:
                    f.write(text)
    write_label(folder, incident.label.data("run"))


def write_label(folder: str, label: dict[str, object]) -> None:
    """Write expected.json."""
    with open(os.path.join(folder, "expected.json"), "w") as f:
        f.write(json.dumps(label, indent=2) + "\n")


def _files(folder: str) -> list[str]:
    return sorted(os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)


def neutral(text: bytes, job: str, venv: str) -> bytes:
    """Replace the paths and the kernel of this machine."""
    python = os.path.dirname(os.path.dirname(os.path.realpath(os.path.join(venv, "bin/python"))))
    scratch = os.path.dirname(job)
    replaced = {
        job: JOB,
        scratch: "/scratch",
        f"/{os.path.basename(scratch)}-": "/kubepods/burstable/",
        venv: "/opt/venv",
        python: "/usr/local",
        os.uname().release: "6.1.0",
    }
    for here, shown in replaced.items():
        text = text.replace(here.encode(), shown.encode())
    return text


def shorten(text: bytes) -> bytes:
    """Leave lines out in the middle of a long text."""
    if len(text) <= HEAD_BYTES + TAIL_BYTES:
        return text
    head = text[: text.rfind(b"\n", 0, HEAD_BYTES) + 1]
    return head + text[text.index(b"\n", len(text) - TAIL_BYTES) + 1 :]


def run_inside(incident: Incident, job: str, logs: str, venv: str) -> None:
    """Run the incident's processes in the namespaces that this process is the first of."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    hosts = {process.host: None for process in incident.processes}
    with open(os.path.join(os.path.dirname(job), "hosts"), "w") as f:
        f.write("127.0.0.1 localhost " + " ".join(hosts) + "\n")
    subprocess.run(["mount", "--bind", f.name, "/etc/hosts"], check=True)
    started = time.time()
    run = _Run(incident, job, venv)
    run.wait()
    _write(incident, run.lines, logs)
    if incident.kernel:
        _write_kernel(started, logs)
    if incident.pods:
        pods = [_pod(name, started, end) for name, end in run.ends.items()]
        with open(os.path.join(logs, "pods.json"), "w") as f:
            f.write(
                json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}, indent=1) + "\n"
            )


class End(NamedTuple):
    """How a process ended.

    Attributes:
        code: as a shell counts.
        time_s: when.
        out_of_memory: the kernel killed it for its cgroup's memory.
    """

    code: int
    time_s: float
    out_of_memory: bool


def _pod(name: str, started_s: float, end: End) -> dict[str, object]:
    """Return a Pod as the API server returns it, without what says nothing about its end."""
    reason = "Completed" if not end.code else "OOMKilled" if end.out_of_memory else "Error"
    terminated = {
        "exitCode": end.code,
        "reason": reason,
        "startedAt": _moment(started_s).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "finishedAt": _moment(end.time_s).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    container = {
        "name": "main",
        "restartCount": 0,
        "ready": False,
        "state": {"terminated": terminated},
    }
    phase = "Failed" if end.code else "Succeeded"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "status": {"phase": phase, "containerStatuses": [container]},
    }


def _moment(time_s: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(time_s, datetime.UTC)


class _Run:
    """The processes of an incident, and the lines that they have printed."""

    def __init__(self, incident: Incident, job: str, venv: str) -> None:
        self.lines: list[Line] = []
        self.ends: dict[str, End] = {}
        self._job = job
        self._incident = incident
        self._news = threading.Condition()
        self._processes = {p.name: _start(p, job, venv) for p in incident.processes}
        self._readers = [
            threading.Thread(target=self._read, args=item) for item in self._processes.items()
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, name: str, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout
        for text in process.stdout:
            with self._news:
                self.lines.append(Line(time.time(), name, text))
                self._news.notify_all()

    def wait(self) -> None:
        """Wait for the processes; signal and stop them as the incident says."""
        deadline = time.monotonic() + self._incident.limit_s
        failed_at: float | None = None
        outside = self._incident.outside
        while self._note_ends() < len(self._processes):
            with self._news:
                self._news.wait(0.1)
                if outside and any(outside.when.encode() in line.text for line in self.lines):
                    self._signal(outside)
                    outside = None
            if failed_at is None and any(end.code for end in self.ends.values()):
                failed_at = time.monotonic()
            grace = self._incident.stop_others_s
            if failed_at and grace is not None and time.monotonic() > failed_at + grace:
                self._signal(Outside(signal.SIGTERM, ""))
                failed_at, deadline = None, min(deadline, time.monotonic() + 10)
                self._incident = self._incident._replace(stop_others_s=None)
            if time.monotonic() > deadline:
                self._signal(Outside(signal.SIGKILL, ""))
                deadline += 1
        for process in self._processes.values():
            _end_group(process)
        for reader in self._readers:
            reader.join()

    def _note_ends(self) -> int:
        """Note who has ended since; returns how many have."""
        for name, process in self._processes.items():
            if name not in self.ends and (code := process.poll()) is not None:
                control = os.path.join(_cgroup(self._job, name), "memory.oom_control")
                killed = os.path.exists(control) and "oom_kill 0" not in _text(control)
                self.ends[name] = End(code if code >= 0 else 128 - code, time.time(), killed)
        return len(self.ends)

    def _signal(self, outside: Outside) -> None:
        for name, process in self._processes.items():
            if process.poll() is None and outside.process in {None, name}:
                os.killpg(process.pid, outside.signal)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill what a process has left, as the end of its container does."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _start(process: Process, job: str, venv: str) -> subprocess.Popen[bytes]:
    env = {
        "PATH": f"{venv}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": job,
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
        # The store of a restarted attempt would else have the addresses of the attempt before.
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        **process.env,
    }
    cgroup = ""
    if process.memory_mib is not None:
        cgroup = _cgroup(job, process.name)
        os.makedirs(cgroup, exist_ok=True)
        with open(os.path.join(cgroup, "memory.limit_in_bytes"), "w") as f:
            f.write(str(process.memory_mib << 20))
        cgroup = f"echo $$ > {cgroup}/cgroup.procs; "
    script = f"{cgroup}hostname {process.host}; exec bash -c {_quoted(process.command)}"
    return subprocess.Popen(
        ["env", "--default-signal", "nice", "-n", "10", "unshare", "--uts", "bash", "-c", script],
        cwd=job,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def _cgroup(job: str, name: str) -> str:
    return os.path.join(_CGROUPS, f"{os.path.basename(os.path.dirname(job))}-{name}")


def _text(path: str) -> str:
    with open(path) as f:
        return f.read()


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _write(incident: Incident, lines: list[Line], logs: str) -> None:
    """Write the lines in the incident's form."""
    processes = {process.name: n for n, process in enumerate(incident.processes)}
    skews = {process.name: process.skew_s for process in incident.processes}
    one = {"prefixed": "job.log", "mixed": "job.log", "labelled": "slurm-40721.out"}
    texts: dict[str, list[bytes]] = {}
    for line in lines:
        skewed = line._replace(time_s=line.time_s + skews[line.process])
        name = one.get(incident.form, f"{line.process}.log")
        texts.setdefault(name, []).append(_formed(incident.form, skewed, processes[line.process]))
    for name, parts in texts.items():
        with open(os.path.join(logs, name), "wb") as f:
            f.writelines(parts)


def _formed(form: str, line: Line, number: int) -> bytes:
    stamp = _moment(line.time_s).strftime("%Y-%m-%dT%H:%M:%S.%f")
    stamp += f"{int(line.time_s * 1e9) % 1000:03}Z"
    if form == "cri":
        return b"%s stdout F %s\n" % (stamp.encode(), line.text.rstrip(b"\n"))
    if form == "docker":
        data = {"log": line.text.decode(errors="replace"), "stream": "stdout", "time": stamp}
        return json.dumps(data).encode() + b"\n"
    if form == "prefixed":
        return b"[%s] %s" % (line.process.encode(), line.text)
    if form == "labelled":
        return b"%d: %s" % (number, line.text)
    return line.text


def _write_kernel(since_s: float, logs: str) -> None:
    """Write the kernel's messages since then, with times that people read."""
    done = subprocess.run(["dmesg", "--time-format", "iso"], capture_output=True, text=True)
    kept = []
    for line in done.stdout.splitlines(keepends=True):
        stamp = line.split(" ", 1)[0].replace(",", ".")
        try:
            at = datetime.datetime.fromisoformat(stamp).timestamp()
        except ValueError:
            continue
        if at >= since_s - 1 and "labbr" not in line and "labv" not in line:
            kept.append(line)
    with open(os.path.join(logs, "dmesg.txt"), "w") as f:
        f.writelines(kept)

"""Runs the processes of an incident in namespaces of their own.

Root on Linux: each incident has its own processes, network, host names and mounts, so that ports
are free and nothing that hangs survives it.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import threading
import time

from tests.incidents.incident import Incident, Outside, Process
from tests.incidents.writing import End, Line, write_kernel, write_lines, write_pods

CGROUPS = "/sys/fs/cgroup/memory"
"""Where memory cgroups of version 1 are."""


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
    write_lines(incident, run.lines, logs)
    if incident.kernel:
        write_kernel(started, logs)
    if incident.pods:
        write_pods(run.ends, started, logs)


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
        # Two jobs at once would use each other's folder, as their process ids are the same.
        "OMPI_MCA_orte_tmpdir_base": os.path.dirname(job),
        **process.env,
    }
    cgroup = ""
    if process.memory_mib is not None:
        cgroup = _cgroup(job, process.name)
        os.makedirs(cgroup, exist_ok=True)
        with open(os.path.join(cgroup, "memory.limit_in_bytes"), "w") as f:
            f.write(str(process.memory_mib << 20))
        cgroup = f"echo $$ > {cgroup}/cgroup.procs; "
    script = f"{cgroup}hostname {process.host}; exec bash -c {shlex.quote(process.command)}"
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
    return os.path.join(CGROUPS, f"{os.path.basename(os.path.dirname(job))}-{name}")


def _text(path: str) -> str:
    with open(path) as f:
        return f.read()

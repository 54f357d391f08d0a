"""Writes what the processes of an incident printed, and how they ended."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tests.incidents.incident import Incident


class Line(NamedTuple):
    """A line of a process's output, and when it came."""

    time_s: float
    process: str
    text: bytes


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


def write_lines(incident: Incident, lines: list[Line], logs: str) -> None:
    """Write the lines in the incident's form."""
    processes = {process.name: n for n, process in enumerate(incident.processes)}
    skews = {process.name: process.skew_s for process in incident.processes}
    one = {"prefixed": "job.log", "mixed": "job.log", "labelled": "slurm-40721.out"}
    one |= {"kubectl": "kubectl.log", "shipped": "export.jsonl", "stamped": "kubectl.log"}
    one |= {"stern": "stern.log", "compose": "compose.log", "pdsh": "run.log", "nodes": "all.log"}
    one |= {"journal": "journal.txt", "cloud": "downloaded-logs.jsonl", "loki": "logcli.txt"}
    one |= {"journal-json": "journal.json", "tagged": "fluentd.log", "tailed": "tail.txt"}
    one |= {
        "honcho": "honcho.log",
        "parallel": "out.txt",
        "csv": "export.csv",
        "logfmt": "logs.txt",
    }
    one |= {"ci": "job-811.log", "pm2": "pm2.log"}
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
    if form == "kubectl":
        return b"[pod/%s/main] %s" % (line.process.encode(), line.text)
    if form == "shipped":
        pod = {"pod_name": line.process, "container_name": "main"}
        text = line.text.decode(errors="replace").rstrip("\n")
        shipped = {"@timestamp": stamp, "log": text, "stream": "stdout", "kubernetes": pod}
        return json.dumps(shipped).encode() + b"\n"
    if form in _BEFORE:
        return _BEFORE[form](line, stamp, number).encode() + line.text
    if form == "cloud":
        message = line.text.decode(errors="replace").rstrip("\n")
        resource = {"type": "k8s_container", "labels": {"pod_name": line.process}}
        entry = {"textPayload": message, "timestamp": stamp, "severity": "INFO"}
        return json.dumps({**entry, "resource": resource}).encode() + b"\n"
    if form == "journal-json":
        message = line.text.decode(errors="replace").rstrip("\n")
        entry = {"__REALTIME_TIMESTAMP": str(int(line.time_s * 1e6)), "_HOSTNAME": line.process}
        shown = {**entry, "SYSLOG_IDENTIFIER": "train", "PRIORITY": "6", "MESSAGE": message}
        return json.dumps(shown).encode() + b"\n"
    if form in {"csv", "logfmt"}:
        message = line.text.decode(errors="replace").rstrip("\n")
        if form == "csv":
            escaped = message.replace('"', '""')
            return f'"{stamp[:23]}Z","{line.process}","stderr","{escaped}"\n'.encode()
        return f"ts={stamp} pod={line.process} stream=stderr msg={json.dumps(message)}\n".encode()
    if form == "labelled":
        return b"%d: %s" % (number, line.text)
    return line.text


_BEFORE: Mapping[str, Callable[[Line, str, int], str]] = {
    "stamped": lambda line, stamp, n: f"[pod/{line.process}/pytorch] {stamp} ",
    "stern": lambda line, stamp, n: f"{line.process} pytorch ",
    "compose": lambda line, stamp, n: f"{line.process + '-1':12} | ",
    "pdsh": lambda line, stamp, n: f"{line.process}: ",
    "nodes": lambda line, stamp, n: f"node-{n // 2}: [{n % 2}] ",
    "journal": lambda line, stamp, n: (
        f"{_moment(line.time_s).strftime('%b %d %H:%M:%S')} {line.process} train[{4100 + n}]: "
    ),
    "honcho": lambda line, stamp, n: f"{stamp[11:19]} trainer.{n} | ",
    "parallel": lambda line, stamp, n: f"{n}\t",
    "ci": lambda line, stamp, n: f"{stamp[:23]}Z 01E [{line.process}] ",
    "pm2": lambda line, stamp, n: f"{n}|fleet  | ",
    "tagged": lambda line, stamp, n: f"{stamp} {line.process} stdout: ",
    "tailed": lambda line, stamp, n: f"{stamp[:26]}+00:00 train/default/{line.process} ",
    "loki": lambda line, stamp, n: f'{stamp[:19]}Z {{pod="{line.process}", stream="stderr"}} ',
}
"""What the forms have before each line."""


def write_kernel(since_s: float, logs: str) -> None:
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


def write_pods(ends: Mapping[str, End], started_s: float, logs: str) -> None:
    """Write how each process ended, as ``kubectl get pods -o json`` shows it."""
    pods = [_pod(name, started_s, end) for name, end in ends.items()]
    with open(os.path.join(logs, "pods.json"), "w") as f:
        f.write(json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}, indent=1) + "\n")


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

"""Runs an incident and keeps what it leaves, without this machine's names."""

from __future__ import annotations

import glob
import gzip
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile

from tests.incidents.incident import Incident
from tests.incidents.running import CGROUPS

HERE = os.path.dirname(os.path.abspath(__file__))
JOB = "/workspace"
"""What the job's folder is called in the recorded texts."""
HEAD_BYTES, TAIL_BYTES = 12 * 1024, 36 * 1024
"""A longer file loses whole lines between its head and its tail."""
_PICKLE = b"\x80\x02"
"""How the flight recorder's dumps begin, which are pickles of protocol 2."""


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
        for left in glob.glob(f"{CGROUPS}/{os.path.basename(scratch)}-*"):
            os.rmdir(left)
        for kept in incident.folders:
            shutil.copytree(os.path.join(job, kept), logs, dirs_exist_ok=True)
        if incident.collect:
            incident.collect(logs)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        for path in _files(logs):
            target = os.path.join(folder, os.path.relpath(path, logs))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(path, "rb") as f:
                text = shorten(neutral(f.read(), job, venv))
            if text and incident.form == "gz":
                target, text = f"{target}.gz", gzip.compress(text, mtime=0)
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
    if text.startswith(_PICKLE):
        # Strings have lengths in a pickle, so that it is written anew.
        plain = json.dumps(pickle.loads(text)).encode()
        return pickle.dumps(json.loads(neutral(plain, job, venv)), protocol=2)
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

"""Runs inside the virtual machine: mount_storage against its servers; writes what came of it.

Beside it lie the packages, in ``site``, and the modules. Each line is a JSON object with ``case``.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "site"))


from pairun.base import system  # noqa: E402
from pairun.contract.arguments import build  # noqa: E402
from pairun.contract.loading import load_module  # noqa: E402
from pairun.executor.child import perform  # noqa: E402
from pairun.host import mounts  # noqa: E402
from pairun.host.context import HostContext  # noqa: E402
from pairun.module import Secret  # noqa: E402

MODULE = load_module("mount_storage", os.path.join(HERE, "modules", "mount_storage"))
PAI_DIR = "/tmp/pai"
PASSWORD = os.environ["LAB_CIFS_PASSWORD"]
USER = os.environ["LAB_CIFS_USER"]
NFS: dict[str, Any] = {
    "type": "nfs",
    "server": os.environ["LAB_NFS_SERVER"],
    "export": os.environ["LAB_NFS_PATH"],
    "path": "/mnt/nfs",
}
CIFS: dict[str, Any] = {
    "type": "samba",
    "server": "localhost",
    "share": "share",
    "username": USER,
    "password": Secret(PASSWORD),
    "path": "/mnt/cifs",
}


def run(*storages: dict[str, Any], limit_s: float | None = None, **more: Any) -> dict[str, Any]:
    """One attempt, with what is mounted below /mnt afterwards and the seconds it took."""
    module, problems = build(MODULE, {"storages": list(storages), **more})
    if module is None:
        return {"problems": [p.message for p in problems]}
    began = time.monotonic()
    deadline = None if limit_s is None else began + limit_s
    report = perform(module, HostContext(dict(os.environ), PAI_DIR, deadline))._asdict()
    report["seconds"] = time.monotonic() - began
    report["mounted"] = sorted(m.target for m in mounts.mounts() if m.target.startswith("/mnt"))
    return report


def say(case: str, report: dict[str, Any], **more: Any) -> None:
    """One line of the result."""
    with open(os.path.join(os.environ["LAB_OUTPUT"], "cases"), "a", encoding="utf-8") as file:
        file.write(json.dumps({"case": case, **report, **more}) + "\n")


def drop(*storages: dict[str, Any]) -> None:
    """Unmount."""
    run(*storages, state="absent")


def shell(command: str) -> None:
    """Change the machine."""
    subprocess.run(["bash", "-c", command], check=True, stdout=sys.stderr)


def both(name: str, storage: dict[str, Any]) -> None:
    """Mount, write, once more, unmount, once more."""
    say(f"{name} mounts", run(storage))
    with open(f"{storage['path']}/{name}.txt", "w") as file:
        file.write(name)
    say(f"{name} again", run(storage))
    say(f"{name} unmounts", run(storage, state="absent"))
    say(f"{name} unmounts again", run(storage, state="absent"))
    run({**storage, "read_only": True})
    try:
        open(f"{storage['path']}/more.txt", "w").close()
        written = True
    except OSError:
        written = False
    read = open(f"{storage['path']}/{name}.txt").read()
    say(f"{name} read-only", run({**storage, "read_only": True}), written=written, read=read)
    say(f"{name} is read-only, not wanted", run(storage))
    drop(storage)


def below(name: str, storage: dict[str, Any]) -> None:
    """A sub-directory with names in it, made, and found again."""
    wanted = {**storage, "subdir": "homes/%User/%JOB"}
    say(f"{name} sub-directory", run(wanted, user="alice", job="alice~train"))
    with open(f"{storage['path']}/own.txt", "w") as file:
        file.write("own")
    say(f"{name} sub-directory again", run(wanted, user="alice", job="alice~train"))
    say(f"{name} another sub-directory", run({**storage, "subdir": "homes/bob"}))
    drop(wanted | {"subdir": "homes/alice/alice~train"})
    run(storage)
    found = open(f"{storage['path']}/homes/alice/alice~train/own.txt").read()
    say(f"{name} sub-directory seen from above", run(storage), found=found)
    drop(storage)
    say(f"{name} read-only without it", run({**storage, "subdir": "none", "read_only": True}))


def speed() -> None:
    """The kernel alone, and the module: the best of five each."""
    data = "vers=4.2,addr=127.0.0.1,clientaddr=127.0.0.1"
    os.makedirs("/mnt/nfs", exist_ok=True)
    kernel, module = [], []
    for _ in range(5):
        began = time.monotonic()
        system.mount("127.0.0.1:/data", "/mnt/nfs", "nfs", 0, data)
        kernel.append(time.monotonic() - began)
        system.unmount("/mnt/nfs")
        module.append(run(NFS)["seconds"])
        drop(NFS)
    say("speed", {}, kernel=min(kernel), module=min(module))


def refusals() -> None:
    """What servers and names say no to."""
    say("nfs missing export", run({**NFS, "export": "/nothing"}))
    shell("exportfs -au; exportfs -o rw,fsid=0,insecure,no_subtree_check 10.99.99.99:/srv/nfs")
    say("nfs refuses", run(NFS))
    shell("exportfs -au; exportfs -ra")
    say("nfs refuses no more", run(NFS))
    drop(NFS)
    say("nfs nothing listens", run({**NFS, "options": ["port=2999", "retry=0"]}, limit_s=20))
    say("nfs bad option", run({**NFS, "options": ["nonsense=1"]}))
    say("nfs no name", run({**NFS, "server": "no.such.host.invalid"}))
    say("samba wrong password", run({**CIFS, "password": Secret("wrong-pass")}))
    say("samba missing share", run({**CIFS, "share": "nothing"}))
    say("samba no name", run({**CIFS, "server": "no.such.host.invalid"}))
    say("samba nothing listens", run({**CIFS, "options": ["port=2999"]}, limit_s=20))
    with silent_server() as port:
        say("nfs silent", run({**NFS, "options": [f"port={port}"]}, limit_s=4))
        say("samba silent", run({**CIFS, "options": [f"port={port}"]}, limit_s=4))


@contextlib.contextmanager
def silent_server() -> Iterator[int]:
    """Accepts, and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def passwords() -> None:
    """Whatever a person may call a password."""
    for password in ("a,b \"c' d", "ends,", ",,both,,", "per%cent=#\\ü", PASSWORD):
        lines = f"{password}\n{password}\n".encode()
        subprocess.run(["smbpasswd", "-s", "-a", USER], input=lines, check=True, stdout=sys.stderr)
        report = run({**CIFS, "password": Secret(password)})
        shown = [f for f in ("/proc/mounts", "/proc/self/mountinfo") if password in open(f).read()]
        kernel = subprocess.run(["dmesg"], capture_output=True, check=True, text=True).stdout
        say("samba password", report, password=password, shown=shown, logged=password in kernel)
        drop(CIFS)


def points() -> None:
    """Mount points that cannot be used, and storages that stand in each other's way."""
    os.makedirs("/mnt/full/x", exist_ok=True)
    say("not empty", run({**NFS, "path": "/mnt/full"}))
    open("/mnt/file", "w").close()
    say("a file", run({**NFS, "path": "/mnt/file"}))
    run(NFS)
    say("from elsewhere", run({**CIFS, "path": "/mnt/nfs"}))
    say("another export", run({**NFS, "export": "/other"}))
    drop(NFS)
    say("all or nothing", run(NFS, {**CIFS, "password": Secret("wrong-pass")}))
    inner = {**CIFS, "path": "/mnt/nfs/inner"}
    say("inner before outer", run(inner, NFS))
    say("inner before outer again", run(inner, NFS))
    say("inner and outer unmount", run(inner, NFS, state="absent"))
    say("two at one", run(NFS, {**CIFS, "path": "/mnt/nfs/"}))
    os.symlink("/mnt/nfs", "/mnt/link")
    say("two at one by a link", run(NFS, {**CIFS, "path": "/mnt/link"}))


def hanging() -> None:
    """A server that stops after the mount; what is mounted can still be taken away."""
    run(NFS)
    shell("iptables -I INPUT -p tcp --dport 2049 -j DROP" if FIREWALL else "rpc.nfsd 0")
    say("hangs after the mount", run(NFS, answer_within="2s"))
    say("hanging and unmounted", run(NFS, state="absent"))
    if FIREWALL:
        shell("iptables -D INPUT -p tcp --dport 2049 -j DROP")
    else:
        shell("rpc.nfsd -N 3 -V 4 --grace-time 10 --lease-time 10 4")


FIREWALL = subprocess.run(["which", "iptables"], capture_output=True, check=False).returncode == 0

if __name__ == "__main__":
    os.makedirs(PAI_DIR, exist_ok=True)
    os.makedirs("/srv/nfs/other")
    both("nfs", NFS)
    both("samba", CIFS)
    below("nfs", NFS)
    below("samba", CIFS)
    speed()
    refusals()
    passwords()
    points()
    hanging()
    say("end", {"mounted": sorted(m.target for m in mounts.mounts() if "/mnt" in m.target)})

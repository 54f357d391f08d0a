"""ssh between network hosts: aliases, launches as mpirun and horovodrun make them, lost hosts."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pairun.base.paths import PLAIN_FILES
from pairun.volume.bundle import copy_tools, find_tools
from pairun.volume.door import Door

TOOLS = Path(find_tools(os.environ))
NAMES = ("sshd", "ssh-session", "ssh/ssh", "ssh/scp", "ssh/sftp")
HERE = Path(__file__).parent
PORT = 22022
COUNT = 3
WAIT_S = 60.0

# A collective over all ranks by the C library of Debian's Open MPI.
MPI_PROGRAM = """
import ctypes, os
mpi = ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL)
def handle(name):
    return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, name)))
world = handle("ompi_mpi_comm_world")
rank, total = ctypes.c_int(), ctypes.c_int()
assert mpi.MPI_Init(None, None) == 0
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
mine = ctypes.c_int(rank.value + 1)
mpi.MPI_Allreduce(ctypes.byref(mine), ctypes.byref(total), 1, handle("ompi_mpi_int"),
                  handle("ompi_mpi_op_sum"), world)
print(rank.value, total.value, os.uname().nodename, os.environ["OF_THE_JOB"], flush=True)
mpi.MPI_Finalize()
"""


class Hosts:
    """Network hosts with a volume each, as init leaves it.

    Args:
        folder: for the volumes.
        addresses: of the hosts.
    """

    def __init__(self, folder: Path, addresses: list[str]) -> None:
        self.volumes = [folder / f"host-{n}" for n in range(COUNT)]
        self.addresses = addresses
        secret = base64.b64encode(os.urandom(32))
        listed = [
            {"index": n, "pod_uid": str(n), "host_ip": address, "ports": {"ssh": [PORT]}}
            for n, address in enumerate(addresses)
        ]
        roles = [{"name": "Worker_A", "fc_name": "workera", "instances": listed}]
        for n, volume in enumerate(self.volumes):
            for part in ("run", "runtime.d", "rendezvous"):
                (volume / part).mkdir(parents=True)
            copy_tools(NAMES, str(TOOLS), str(volume / "tools"), Door(str(volume)))
            (volume / "rendezvous" / "key").write_bytes(secret)
            own = {"role": "workera", "index": n}
            text = json.dumps({"own": own, "roles": roles})
            (volume / "runtime.d" / "cluster.json").write_text(text)

    def start(self, host: int, *argv: str) -> subprocess.Popen[str]:
        """Start a program on a host, under the host's own name."""
        tools = self.volumes[host] / "tools" / "ssh"
        env = {PLAIN_FILES: "1", "PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(self.volumes[host]),
               "PAI_CONTAINER_SSH_PORT": str(PORT), "OF_THE_JOB": "a b"}  # fmt: skip
        # mpirun looks aliases up in DNS first: none here, instead of one that never answers.
        named = 'hostname "$0"; mount --bind /dev/null /etc/resolv.conf; exec "$@"'
        return subprocess.Popen(
            ["ip", "netns", "exec", f"lab{host + 1}", "unshare", "--uts", "--mount", "sh", "-c", named,
             f"node-{host}", *argv],
            env=env, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )  # fmt: skip

    def module(self, host: int, name: str, **args: object) -> subprocess.Popen[str]:
        """Start a module on a host."""
        driver = str(HERE / "ssh_host.py")
        return self.start(
            host, sys.executable, driver, name, str(self.volumes[host]), json.dumps(args)
        )

    def stop(self, host: int) -> None:
        """Stop a host's sshd."""
        with contextlib.suppress(OSError, ValueError):
            pid = int((self.volumes[host] / "run" / "ssh" / "sshd.pid").read_text())
            os.kill(pid, signal.SIGTERM)


def ok(process: subprocess.Popen[str]) -> str:
    """What a program printed that must succeed."""
    out, err = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, err
    return out


@pytest.fixture(scope="module")
def addresses(lab: Callable[..., str]) -> Iterator[list[str]]:
    """Of the network hosts, which go down with these tests."""
    found = re.search(r"LAB_HOST_IPS=(.*)", lab("hosts", "up", str(COUNT)))
    assert found
    yield "".join(shlex.split(found[1])).split()[:COUNT]
    lab("hosts", "down")


@pytest.fixture
def hosts(addresses: list[str], tmp_path: Path) -> Iterator[Hosts]:
    """Three hosts without an sshd."""
    if not (TOOLS / "sshd").exists():
        pytest.skip("needs `make bundle`")
    made = Hosts(tmp_path, addresses)
    yield made
    for n in range(COUNT):
        made.stop(n)


@pytest.fixture
def met(hosts: Hosts) -> Hosts:
    """The hosts after the barrier: each comes to it as soon as its own sshd listens."""
    for process in [hosts.module(n, "ssh_setup", jobssh=True) for n in range(COUNT)]:
        ok(process)
    for process in [hosts.module(n, "ssh_barrier", timeout_min=1) for n in range(COUNT)]:
        ok(process)
    return hosts


def test_every_host_reaches_every_other(met: Hosts) -> None:
    """By both names of the role, as horovodrun asks before it starts."""
    for here in range(COUNT):
        for there in range(COUNT):
            for name in (f"workera-{there}", f"Worker_A-{there}"):
                options = ("-o", "PasswordAuthentication=no", "-o", "StrictHostKeyChecking=no")
                said = ok(met.start(here, "ssh", *options, name, "hostname"))
                assert said == f"node-{there}\n"


def test_mpirun(met: Hosts, tmp_path: Path) -> None:
    """An MPI program over three hosts, started through the aliases right after the barrier."""
    if shutil.which("mpirun") is None:
        pytest.skip("needs Debian's openmpi-bin")
    program = tmp_path / "program.py"
    program.write_text(MPI_PROGRAM)
    network = "10.77.0.0/24"
    said = ok(met.start(
        0, "mpirun", "--allow-run-as-root", "--host", ",".join(f"workera-{n}:1" for n in range(COUNT)),
        "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", network,
        "--mca", "oob_tcp_if_include", network, "/usr/bin/python3", str(program),
    ))  # fmt: skip
    lines = sorted(said.splitlines())
    assert lines == [f"{n} {sum(range(COUNT + 1))} node-{n} a b" for n in range(COUNT)]


def test_a_host_that_cannot_be_reached(hosts: Hosts) -> None:
    """Which one, and why: its address, and what ssh says."""
    for n in (0, 1):
        ok(hosts.module(n, "ssh_setup", jobssh=True))
    waiting = [hosts.module(n, "ssh_barrier", timeout_min=0.05) for n in (0, 1)]
    for process in waiting:
        _, err = process.communicate(timeout=WAIT_S)
        assert process.returncode != 0
        assert "SSH barrier reaches max retry count" in err
        assert f"workera-2 ({hosts.addresses[2]} port {PORT}: " in err
        assert "Connection refused" in err

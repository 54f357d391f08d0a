"""What ssh costs: from the start of the task to the first login, and the barrier of many hosts.

All hosts are on this machine, each with an sshd, a volume and a process of its own.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import itertools
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator

from benchmarks.measure import TIMES, NotMeasured, Row, samples, wall, wall_ms
from pairun.base.paths import PLAIN_FILES
from pairun.contract.arguments import build
from pairun.contract.loading import load_module
from pairun.contract.sources import built_in_modules
from pairun.host.context import HostContext
from pairun.module import CheckModule, StateModule
from pairun.volume.bundle import copy_tools, find_tools
from pairun.volume.door import Door

HOSTS = 200
_LOGINS = 10
_NAMES = ("sshd", "ssh-session", "ssh/ssh")


def rows() -> Iterator[Row]:
    """The table's lines.

    Raises:
        NotMeasured: there is no sshd of ours.
    """
    tools = find_tools(os.environ)
    if not os.path.exists(os.path.join(tools, "sshd")):
        raise NotMeasured("ssh: there is no sshd; `make bundle` builds it")
    with tempfile.TemporaryDirectory() as folder, _stopped_at_end(pathlib.Path(folder)) as root:
        contexts = _volumes(root, tools)
        set_up, meet = _action("ssh_setup", jobssh=True), _action("ssh_barrier")

        def begin(n: int) -> None:
            set_up(contexts[n])
            _login(root, n)

        first = samples([wall_ms(functools.partial(begin, n)) for n in range(TIMES)])
        login = wall(lambda: _login(root, 0), _LOGINS)
        yield Row("ssh: task to first login", "ms", first, 500, "a login", login)
        _in_processes(contexts[TIMES:], set_up, at_once=2)
        met = wall(lambda: _in_processes(contexts, meet, at_once=HOSTS))
        yield Row(
            f"ssh: barrier of {HOSTS} hosts", "ms", met, 5000,
            "as many logins one after another", login.times(HOSTS),
        )  # fmt: skip


def _volumes(root: pathlib.Path, tools: str) -> list[HostContext]:
    """Each host's volume, as init leaves it."""
    # Nothing mounts the key here.
    os.environ[PLAIN_FILES] = "1"
    secret = base64.b64encode(os.urandom(32))
    # Below those that the kernel gives to the ends of connections.
    ports = list(itertools.islice((p for p in range(17000, 32000) if _is_free(p)), HOSTS))
    listed = [
        {"index": n, "pod_uid": str(n), "host_ip": "127.0.0.1", "ports": {"ssh": [port]}}
        for n, port in enumerate(ports)
    ]
    roles = [{"name": "host", "fc_name": "host", "instances": listed}]
    copy_tools(_NAMES, tools, str(root / "tools"), Door(str(root)))
    contexts = []
    for n, port in enumerate(ports):
        volume = root / str(n)
        for part in ("run", "runtime.d", "rendezvous", "tools/ssh"):
            (volume / part).mkdir(parents=True)
        for name in _NAMES:
            (volume / "tools" / name).hardlink_to(root / "tools" / name)
        (volume / "rendezvous" / "key").write_bytes(secret)
        cluster = {"own": {"role": "host", "index": n}, "roles": roles}
        (volume / "runtime.d" / "cluster.json").write_text(json.dumps(cluster))
        # A home of its own: what a shell of this machine reads there is not measured.
        env = {"PATH": os.environ["PATH"], "HOME": str(root), "PAI_CONTAINER_SSH_PORT": str(port)}
        contexts.append(HostContext(env, str(volume), emit_log=lambda _: None))
    return contexts


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        try:
            tried.bind(("0.0.0.0", port))
        except OSError:
            return False
    return True


def _login(root: pathlib.Path, n: int) -> None:
    """Log in at a host as it does itself."""
    config = root / str(n) / "run" / "ssh" / "config"
    argv: list[str | pathlib.Path] = [
        root / str(n) / "tools" / "ssh" / "ssh",
        "-F",
        config,
        f"host-{n}",
        "true",
    ]
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)


def _action(name: str, **args: object) -> Callable[[HostContext], None]:
    """What a module does, loaded once for all hosts: each has a machine of its own elsewhere."""
    made, problems = build(load_module(name, built_in_modules()[name]), args)
    assert made is not None, problems

    def act(context: HostContext) -> None:
        if isinstance(made, CheckModule):
            made.check(context)
        else:
            assert isinstance(made, StateModule)
            made.apply(context)

    return act


def _in_processes(
    contexts: list[HostContext], action: Callable[[HostContext], None], at_once: int
) -> None:
    """Run something for each host, in so many processes."""
    children = []
    for start in range(at_once):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                for context in contexts[start::at_once]:
                    action(context)
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    statuses = [os.waitpid(child, 0)[1] for child in children]
    if any(statuses):
        raise NotMeasured("ssh: a host failed")


@contextlib.contextmanager
def _stopped_at_end(root: pathlib.Path) -> Iterator[pathlib.Path]:
    try:
        yield root
    finally:
        for path in root.glob("*/run/ssh/sshd.pid"):
            with contextlib.suppress(OSError, ValueError):
                os.kill(int(path.read_text()), signal.SIGTERM)

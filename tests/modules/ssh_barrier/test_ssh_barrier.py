"""The module ssh_barrier: instances as processes, each with an sshd and a volume of its own."""

from __future__ import annotations

import base64
import contextlib
import json
import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pytest

from pairun.errors import Problems, Source
from pairun.host.context import HostContext
from pairun.module import CheckModule, Failure, Skip, StateModule
from pairun.openpai.exitspec import read_exit_spec
from pairun.runtime.exitmatching import ExitEvidence, match
from pairun.volume.bundle import find_tools
from tests.conftest import SHARED
from tests.modules.conftest import place_tools

if TYPE_CHECKING:
    from tests.modules.conftest import Harness

TOOLS = Path(find_tools(os.environ))
WAIT_S = 60.0


@attrs.frozen
class Instance:
    """One instance: its volume and its variables."""

    pai_dir: Path
    env: Mapping[str, str]

    def context(self, log: Callable[[str], None] = lambda _: None) -> HostContext:
        """Its world."""
        return HostContext(self.env, str(self.pai_dir), emit_log=log)

    @property
    def folder(self) -> Path:
        """Of ssh."""
        return self.pai_dir / "run" / "ssh"


class Gang:
    """Instances of one job on this machine.

    Args:
        harness: loads modules.
    """

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.instances: list[Instance] = []

    def make(self, count: int) -> None:
        """Make the volumes, as init does."""
        with contextlib.ExitStack() as stack:
            sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
            for each in sockets:
                each.bind(("127.0.0.1", 0))
            ports = [each.getsockname()[1] for each in sockets]
        secret = base64.b64encode(os.urandom(32))
        listed = [
            {"index": i, "pod_uid": str(i), "host_ip": "127.0.0.1", "ports": {"ssh": [port]}}
            for i, port in enumerate(ports)
        ]
        for i, port in enumerate(ports):
            pai_dir = self.harness.tmp / f"instance-{i}"
            for part in ("run", "runtime.d", "rendezvous"):
                (pai_dir / part).mkdir(parents=True)
            place_tools(TOOLS, pai_dir / "tools")
            (pai_dir / "rendezvous" / "key").write_bytes(secret)
            cluster = {
                "own": {"role": "worker", "index": i},
                "roles": [{"name": "worker", "fc_name": "worker", "instances": listed}],
            }
            (pai_dir / "runtime.d" / "cluster.json").write_text(json.dumps(cluster))
            env = {"PATH": os.environ["PATH"], "HOME": str(self.harness.tmp),
                   "PAI_CONTAINER_SSH_PORT": str(port)}  # fmt: skip
            self.instances.append(Instance(pai_dir, env))

    def start_sshd(self, *numbers: int) -> None:
        """Start the sshd of some."""
        module = self.harness.make("ssh_setup", {"jobssh": True})
        assert isinstance(module, StateModule)
        for number in numbers:
            module.apply(self.instances[number].context())

    def begin(self, number: int, **args: Any) -> tuple[Any, Connection]:
        """Let one come to the barrier; its end is told over the connection."""
        module = self.harness.make("ssh_barrier", {"timeout_min": 0.5, **args})
        assert isinstance(module, CheckModule)
        here, there = multiprocessing.Pipe()

        def run() -> None:
            try:
                result = module.check(self.instances[number].context())
                there.send(("ok", result.message if result else ""))
            except Failure as e:
                there.send((e.kind, e.message))

        process = multiprocessing.get_context("fork").Process(target=run)
        process.start()
        return process, here

    def end(self) -> None:
        """Stop every sshd."""
        for instance in self.instances:
            with contextlib.suppress(OSError, ValueError):
                os.kill(int((instance.folder / "sshd.pid").read_text()), signal.SIGTERM)


@pytest.fixture
def gang(harness: Harness) -> Iterator[Gang]:
    """Nobody yet."""
    if not (TOOLS / "sshd").exists():
        pytest.skip("needs `make bundle`")
    made = Gang(harness)
    yield made
    made.end()


def told(connection: Connection) -> tuple[str, str]:
    """How one ended."""
    assert connection.poll(WAIT_S)
    kind, message = connection.recv()
    return kind, message


def test_all_pass_together(gang: Gang) -> None:
    """More than one asks by itself: the word goes up and down; who comes early waits for the last."""
    count = 20
    gang.make(count)
    gang.start_sshd(*range(count - 1))
    early = [gang.begin(n)[1] for n in range(count - 1)]
    assert not wait(early, 0.5)
    gang.start_sshd(count - 1)
    assert not wait(early, 0.5)
    last = gang.begin(count - 1)[1]
    for connection in (*early, last):
        kind, message = told(connection)
        assert (kind, message.split(" after")[0]) == ("ok", "all 20 instances were reached by ssh")


def test_it_stays_open(gang: Gang) -> None:
    """A second run passes at once, though the others are long gone."""
    gang.make(3)
    gang.start_sshd(0, 1, 2)
    for connection in [gang.begin(n)[1] for n in range(3)]:
        assert told(connection)[0] == "ok"
    gang.end()
    assert told(gang.begin(1)[1])[0] == "ok"


@pytest.mark.slow
def test_who_is_missing_and_why(gang: Gang) -> None:
    """In the words that the exit spec looks for; everybody says the same."""
    gang.make(4)
    gang.start_sshd(0, 1, 2)
    (gang.instances[2].folder / "authorized_keys").write_text("")
    connections = [gang.begin(n, timeout_min=0.05)[1] for n in (0, 1)]
    port = gang.instances[3].env["PAI_CONTAINER_SSH_PORT"]
    for connection in connections:
        kind, message = told(connection)
        assert kind == "timeout"
        assert message.startswith("SSH barrier reaches max retry count: after ")
        assert "2 of 4 instances are not reached: " in message
        assert "worker-2 (127.0.0.1 port" in message
        assert "Permission denied (publickey)" in message
        assert f"worker-3 (127.0.0.1 port {port}: ssh: connect to host 127.0.0.1" in message
        assert "Connection refused" in message


def test_an_instance_that_nobody_asks(gang: Gang) -> None:
    """Where the first one never comes, the others say so."""
    gang.make(2)
    gang.start_sshd(1)
    module = gang.harness.make("ssh_barrier", {"timeout_min": 0.001})
    assert isinstance(module, CheckModule)
    instance = gang.instances[1]
    # What the task may take bounds the wait, with time left to say it.
    context = HostContext(instance.env, str(instance.pai_dir), time.monotonic() + 7.0)
    with pytest.raises(
        Failure, match=r"worker-0 \(it has not reported that it reached all instances\)"
    ):
        module.check(context)


def test_one_that_restarts_is_reached_again(gang: Gang) -> None:
    """A login that breaks while others are waited for is made anew."""
    gang.make(3)
    gang.start_sshd(0, 1)
    waiting = [gang.begin(n)[1] for n in (0, 1)]
    state = gang.instances[0].folder / "state"
    while not state.exists() or "worker-1" in state.read_text():
        assert not any(connection.poll(0.02) for connection in waiting)
    os.kill(int((gang.instances[1].folder / "sshd.pid").read_text()), signal.SIGTERM)
    gang.start_sshd(2)
    gang.start_sshd(1)
    for connection in (*waiting, gang.begin(2)[1]):
        assert told(connection)[0] == "ok"


@pytest.mark.parametrize(
    ("args", "says"),
    [({"wanted": "false"}, r"\(jobssh\) is off"), ({}, "this is the only instance")],
)
def test_nothing_to_wait_for(gang: Gang, args: dict[str, Any], says: str) -> None:
    """Not wanted, or nobody else there."""
    gang.make(1)
    module = gang.harness.make("ssh_barrier", args)
    assert isinstance(module, CheckModule)
    with pytest.raises(Skip, match=says):
        module.check(gang.instances[0].context())


def test_without_addresses(gang: Gang) -> None:
    """A job that does not wait for its instances has nothing to ask."""
    gang.make(2)
    path = gang.instances[0].pai_dir / "runtime.d" / "cluster.json"
    path.write_text(path.read_text().replace('"127.0.0.1"', "null"))
    module = gang.harness.make("ssh_barrier", {})
    assert isinstance(module, CheckModule)
    with pytest.raises(Skip, match="not all have an address"):
        module.check(gang.instances[0].context())


def test_without_a_pair(gang: Gang) -> None:
    """Nobody can log in: said at once, not after half an hour."""
    gang.make(2)
    module = gang.harness.make("ssh_barrier", {})
    assert isinstance(module, CheckModule)
    with pytest.raises(Failure, match="the job has no key pair"):
        module.check(gang.instances[0].context())


@pytest.mark.parametrize("given", [None, ""])
def test_without_a_time_it_waits_30_minutes(harness: Harness, given: str | None) -> None:
    module: Any = harness.make("ssh_barrier", {"timeout_min": given})
    assert module._limit_s(harness.context()) == 30 * 60


@pytest.mark.parametrize("given", ["soon", "-1", 0, "nan"])
def test_a_time_that_is_none(gang: Gang, given: Any) -> None:
    """What is not a number of minutes is the user's mistake."""
    gang.make(2)
    gang.start_sshd(0)
    module = gang.harness.make("ssh_barrier", {"timeout_min": given})
    assert isinstance(module, CheckModule)
    with pytest.raises(Failure, match="not a number of minutes"):
        module.check(gang.instances[0].context())


@pytest.mark.shared
def test_the_exit_spec_knows_the_words(gang: Gang) -> None:
    """Of the task's exit code and the failure's words OpenPAI's exit spec makes 249."""
    path = SHARED / "openpai" / "golden" / "runtime-exit-spec.pai.yaml"
    problems = Problems()
    spec = read_exit_spec(Source(str(path), "cluster", path.read_text()), problems).data
    assert not list(problems)
    gang.make(2)
    gang.start_sshd(0)
    kind, message = told(gang.begin(0, timeout_min=0.005)[1])
    assert kind == "timeout"
    found = match(spec, ExitEvidence(10, b"", message.encode(), double_ecc=False))
    assert found.code == 249

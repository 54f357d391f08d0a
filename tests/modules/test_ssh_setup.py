"""The module ssh_setup, with the sshd of the bundle and real logins."""

from __future__ import annotations

import base64
import importlib
import json
import os
import signal
import socket
import struct
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairun.contract.loading import load_module
from pairun.contract.sources import built_in_modules
from pairun.handover.tools import find_tools
from pairun.module import Permanent, StateModule

if TYPE_CHECKING:
    from tests.modules.conftest import Harness

TOOLS = Path(find_tools(os.environ))
SEED = base64.b64encode(b"s" * 32).decode()
namespace = vars(
    importlib.import_module(load_module("ssh_setup", built_in_modules()["ssh_setup"]).__module__)
)


def key(number: int = 1, kind: str = "ssh-ed25519", comment: str = "") -> str:
    """A public key's line."""
    body = (
        struct.pack(">I", len(kind)) + kind.encode() + struct.pack(">I", 32) + bytes([number]) * 32
    )
    return f"{kind} {base64.b64encode(body).decode()} {comment}".strip()


def free_port() -> int:
    """A port that nobody has."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


class Place:
    """A volume as init leaves it, with the tools.

    Args:
        harness: the volume is its.
    """

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.port = free_port()
        self.env = {"PAI_CONTAINER_SSH_PORT": str(self.port)}
        self.folder = harness.pai_dir / "run" / "ssh"
        (harness.pai_dir / "run").mkdir()
        (harness.pai_dir / "runtime.d").mkdir()
        (harness.pai_dir / "rendezvous").mkdir()
        (harness.pai_dir / "rendezvous" / "key").write_text(SEED)
        if TOOLS.is_dir():
            (harness.pai_dir / "tools").symlink_to(TOOLS)
        self.cluster([("worker_A", "workera", 2), ("ps", "ps", 1)])

    def cluster(self, roles: list[tuple[str, str, int]], host: str | None = "127.0.0.1") -> None:
        """Leave who the instances are; all have the port of this one."""
        described = [
            {"name": name, "fc_name": fc_name, "instances": [
                {"index": i, "pod_uid": "u", "host_ip": host, "ports": {"ssh": [self.port]}}
                for i in range(count)
            ]}
            for name, fc_name, count in roles
        ]  # fmt: skip
        own = {"role": roles[0][1], "index": 0}
        path = self.harness.pai_dir / "runtime.d" / "cluster.json"
        path.write_text(json.dumps({"own": own, "roles": described}))

    def run(self, args: Mapping[str, Any], **env: str) -> Any:
        """Run the module, and once more, which must change nothing."""
        env = {**self.env, **env}
        outcome = self.harness.run("ssh_setup", args, env)
        assert outcome.failure is None, outcome.failure
        module = self.harness.make("ssh_setup", args)
        assert isinstance(module, StateModule)
        self.harness.changes_nothing(module, env)
        return outcome

    def ssh(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Log in as the job's own command would."""
        argv = [
            str(self.harness.pai_dir / "tools" / "ssh" / "ssh"),
            "-F",
            str(self.folder / "config"),
        ]
        return subprocess.run([*argv, "-oBatchMode=yes", *args], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, check=False, timeout=20)  # fmt: skip

    def stop(self) -> None:
        """End the sshd."""
        pid = self.folder / "sshd.pid"
        if pid.exists():
            os.kill(int(pid.read_text()), signal.SIGTERM)

    def keys(self) -> list[str]:
        """The lines of authorized_keys."""
        return (self.folder / "authorized_keys").read_text().splitlines()


@pytest.fixture
def place(harness: Harness) -> Iterator[Place]:
    """A volume, and no sshd of it afterwards."""
    made = Place(harness)
    yield made
    made.stop()


@pytest.fixture
def bundled(place: Place) -> Place:
    """The same, where the bundle's sshd is there."""
    if not (TOOLS / "sshd").exists():
        pytest.skip("needs `make bundle`")
    return place


# --- logins ------------------------------------------------------------------------------------------


def test_aliases_lead_to_the_instances(bundled: Place) -> None:
    """By the raw and the sanitised name, with the environment of the job, a second run included."""
    value = "a 'b'\n" + "x" * 5000
    many = {f"PAI_VARIABLE_{n}": str(n) for n in range(3000)}
    done = bundled.run({"jobssh": "true"}, SOME=value, **many)
    assert done.result.environment["PATH"].startswith(f"{bundled.harness.pai_dir}/tools/ssh:")
    for alias in ("workera-1", "worker_A-1", "ps-0"):
        said = bundled.ssh(alias, 'printf "%s" "$SOME$PAI_VARIABLE_2999"; which ssh >&2')
        assert said.returncode == 0, said.stderr
        assert said.stdout == f"{value}2999"
        assert said.stderr == f"{bundled.harness.pai_dir}/tools/ssh/ssh\n"


def test_sftp_works(bundled: Place, tmp_path: Path) -> None:
    """Files go through the sshd itself: no sftp-server is needed."""
    bundled.run({"jobssh": True})
    (tmp_path / "sent").write_text("hello")
    tools = bundled.harness.pai_dir / "tools" / "ssh"
    done = subprocess.run(
        [tools / "scp", "-q", "-S", tools / "ssh", "-F", bundled.folder / "config", tmp_path / "sent",
         f"ps-0:{tmp_path}/got"],
        capture_output=True, text=True, check=False, timeout=20,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "got").read_text() == "hello"


def test_every_instance_makes_the_same_key(bundled: Place) -> None:
    """From the job's rendezvous key; OpenSSH reads what we write, and finds the same public key."""
    bundled.run({"jobssh": True})
    private, public = bundled.folder / "id", (bundled.folder / "id.pub").read_text()
    read = subprocess.run(
        ["ssh-keygen", "-y", "-f", private], capture_output=True, text=True, check=True
    )
    assert read.stdout.split()[:2] == public.split()[:2]
    seed = namespace["_made_of"](b"s" * 32, b"the job")
    assert namespace["ed25519_pair"](seed, "pai-job-ssh") == (private.read_bytes(), public.strip())


@pytest.mark.parametrize("kind", ["rsa", "ed25519"])
def test_a_pair_that_is_given(bundled: Place, tmp_path: Path, kind: str) -> None:
    """The user's own pair counts more than a mounted one, with whatever line ends it has."""
    made = tmp_path / "pair"
    form = ["-m", "PEM", "-b", "2048"] if kind == "rsa" else []
    subprocess.run(["ssh-keygen", "-q", "-N", "", "-t", kind, *form, "-f", made], check=True)
    public = made.with_suffix(".pub").read_text()
    (bundled.harness.pai_dir / "ssh-secret").mkdir()
    for name in ("ssh-privatekey", "ssh-publickey"):
        (bundled.harness.pai_dir / "ssh-secret" / name).write_text("other")
    private = made.read_text().replace("\n", "\r\n")
    bundled.run({"jobssh": True, "private_key": private, "public_key": f" {public}\r\n"})
    assert bundled.ssh("ps-0", "true").returncode == 0
    assert bundled.keys() == [" ".join(public.split())]
    assert (bundled.folder / "id").stat().st_mode & 0o777 == 0o600


def test_the_mounted_pair(bundled: Place) -> None:
    """What the platform mounts is used where the user has no pair."""
    pair = namespace["ed25519_pair"](b"m" * 32, "mounted")
    folder = bundled.harness.pai_dir / "ssh-secret"
    folder.mkdir()
    (folder / "ssh-privatekey").write_bytes(pair[0])
    (folder / "ssh-publickey").write_text(pair[1])
    bundled.run({"jobssh": True})
    assert bundled.keys() == [pair[1]]


def test_an_instance_alone_makes_its_own_pair(bundled: Place) -> None:
    """With nobody to share it with, a random pair does, and stays."""
    (bundled.harness.pai_dir / "rendezvous" / "key").unlink()
    bundled.cluster([("worker", "worker", 1)])
    bundled.run({"jobssh": True})
    assert bundled.ssh("worker-0", "true").returncode == 0


def test_without_a_pair_people_get_in(bundled: Place) -> None:
    """Several instances without a shared secret: said, and each lets in people alone."""
    (bundled.harness.pai_dir / "rendezvous" / "key").unlink()
    bundled.run({"jobssh": True, "userssh": {"type": "custom", "value": key()}})
    assert any("no key pair for the job" in line for line in bundled.harness.log)
    assert bundled.keys() == [key()]
    assert not (bundled.folder / "id").exists()


def test_a_home_is_never_touched(bundled: Place) -> None:
    """A ~/.ssh that leads elsewhere is neither followed nor replaced."""
    elsewhere = bundled.harness.tmp / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "authorized_keys").write_text("mine\n")
    (bundled.harness.tmp / ".ssh").symlink_to(elsewhere)
    bundled.run({"jobssh": True, "userssh": {"type": "custom", "value": key()}})
    assert [p.name for p in elsewhere.iterdir()] == ["authorized_keys"]
    assert (elsewhere / "authorized_keys").read_text() == "mine\n"
    assert bundled.ssh("ps-0", "true").returncode == 0


def test_another_sshd_takes_its_place(bundled: Place) -> None:
    """One that has died is started again, with the same host key."""
    bundled.run({"jobssh": True})
    before = (bundled.folder / "host_key").read_bytes()
    pid = int((bundled.folder / "sshd.pid").read_text())
    os.kill(pid, signal.SIGKILL)
    while Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes():
        pass
    bundled.run({"jobssh": True})
    assert bundled.ssh("ps-0", "true").returncode == 0
    assert (bundled.folder / "host_key").read_bytes() == before


def test_a_port_in_use(bundled: Place) -> None:
    """Who holds it is said; it may be free elsewhere."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", bundled.port))
        taken.listen()
        failure = bundled.harness.run("ssh_setup", {"jobssh": True}, bundled.env).failure
    assert failure is not None
    assert (failure.kind, failure.fault) == ("conflict", "platform")
    assert f"port {bundled.port}, which is for ssh, is taken: a TCP socket" in failure.message


def test_an_sshd_that_ends_at_once(place: Place) -> None:
    """Its code is said, and that it said nothing."""
    tools = place.harness.pai_dir / "tools"
    tools.unlink(missing_ok=True)
    (tools / "ssh").mkdir(parents=True)
    for name in ("sshd", "ssh-session", "ssh/ssh"):
        (tools / name).write_text("#!/bin/sh\nexit 3\n")
        (tools / name).chmod(0o755)
    failure = place.harness.run("ssh_setup", {"jobssh": True}, place.env).failure
    assert failure is not None
    assert failure.kind == "transient"
    assert "and ended with 3; the last that it said: nothing" in failure.message


def test_without_any_sshd(place: Place) -> None:
    """Neither in the tools nor in the image: a clear word."""
    answers = {
        "stat": lambda path: None if path.endswith("/sshd") else NotImplemented,
        "which": lambda program: None if program == "sshd" else NotImplemented,
    }
    context = place.harness.world(place.env, answers=answers).ctx
    module = place.harness.make("ssh_setup", {"jobssh": True})
    assert isinstance(module, StateModule)
    with pytest.raises(Permanent, match="there is no sshd"):
        module.apply(context)


def test_names_that_are_taken(bundled: Place) -> None:
    """Of two instances with one name the first has it, and the other is told of."""
    bundled.cluster([("a_b", "ab", 1), ("ab", "x", 1)])
    bundled.run({"jobssh": True})
    config = (bundled.folder / "config").read_text()
    assert "Host ab-0 a_b-0\n" in config
    assert "Host x-0\n" in config
    assert any("the alias ab-0 is somebody else's" in line for line in bundled.harness.log)


def test_peers_without_an_address(bundled: Place) -> None:
    """Who is not there yet has no alias, and is counted."""
    bundled.cluster([("worker", "worker", 3)], host=None)
    bundled.run({"jobssh": True})
    assert "Host " not in (bundled.folder / "config").read_text()
    assert any("3 instances have no address" in line for line in bundled.harness.log)


def test_the_image_has_its_own(place: Place) -> None:
    """Without our tools the image's sshd and ssh do the same, by the same aliases."""
    if not Path("/usr/sbin/sshd").exists():
        pytest.skip("this machine has no sshd")
    if (tools := place.harness.pai_dir / "tools").is_symlink():
        tools.unlink()
    done = place.run({"jobssh": True})
    said = subprocess.run(["ssh", "-oBatchMode=yes", "worker_A-1", "echo in"], text=True, timeout=20,
                          env={**os.environ, **done.result.environment}, capture_output=True,
                          check=False)  # fmt: skip
    assert said.stdout == "in\n", said.stderr


def session(tmp_path: Path, shell: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Run what sshd starts a session with."""
    if not (TOOLS / "ssh-session").exists():
        pytest.skip("needs `make bundle`")
    path = tmp_path / "session"
    path.write_bytes(b"\0".join([shell.encode(), b"PATH=/usr/bin:/bin", b"A=of the job", b""]))
    env = {"PAIRUN_SSH_SESSION": str(path), "PATH": "/nowhere", "SSH_TTY": "x", "A": "other"}
    return subprocess.run([TOOLS / "ssh-session", *args], env=env, text=True, capture_output=True,
                          check=False, timeout=20)  # fmt: skip


@pytest.mark.parametrize(
    ("shell", "args", "code", "says"),
    [
        (
            "/bin/sh",
            ("-c", "echo $A $SSH_TTY $SHELL $PATH"),
            0,
            "of the job x /bin/sh /usr/bin:/bin",
        ),
        ("/bin/sh", ("-c", "exit 7"), 7, ""),
        ("", ("-c", "printenv  A"), 0, "of the job"),
        ("", ("-c", "printenv A; id"), 127, "runs plain words only"),
        ("", ("-c", "/nowhere/program"), 127, "No such file"),
        ("", (), 127, "this image has no shell"),
        ("/nowhere/sh", ("-c", "id"), 254, "No such file"),
    ],
)
def test_a_session(tmp_path: Path, shell: str, args: tuple[str, ...], code: int, says: str) -> None:
    """It begins with the job's environment, and ends as its command does; also without a shell."""
    done = session(tmp_path, shell, *args)
    assert done.returncode == code
    assert says in done.stdout + done.stderr


# --- what is asked for -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "env", "says"),
    [
        ({}, {}, "neither keys of people nor ssh between the instances"),
        ({"jobssh": "False", "userssh": {}}, {}, "neither keys of people"),
        ({"userssh": {"value": key()}}, {}, "neither keys of people"),
        (
            {"userssh": {"type": "custom", "value": "x"}},
            {},
            "nobody could log in: userssh.value, line 1: it is no public key",
        ),
        (
            {"userssh": {"type": "custom", "value": key()}},
            {"PAI_CONTAINER_SSH_PORT": ""},
            "no port",
        ),
    ],
)
def test_nothing_to_do(place: Place, args: dict[str, Any], env: dict[str, str], says: str) -> None:
    """What asks for nothing, or only for what cannot be, is skipped with the reason."""
    skip = place.harness.run("ssh_setup", args, {**place.env, **env}).skip
    assert skip is not None
    assert says in skip.because


def test_jobssh_needs_a_port(place: Place) -> None:
    """Instances that cannot be reached are an error, not a surprise of mpirun."""
    failure = place.harness.run("ssh_setup", {"jobssh": True}).failure
    assert failure is not None
    assert failure.kind == "permanent"
    assert "PAI_CONTAINER_SSH_PORT" in failure.message


def test_a_pair_that_is_none(place: Place) -> None:
    """A public key that is garbage ends it, without showing what it was."""
    args = {"jobssh": True, "private_key": "secret-text", "public_key": "garbage"}
    failure = place.harness.run("ssh_setup", args, place.env).failure
    assert failure is not None
    assert "key pair of the job cannot be used" in failure.message
    assert "garbage" not in failure.message
    assert "secret-text" not in failure.message
    assert place.harness.problems("ssh_setup", {"private_key": "x"})


def test_the_keys_of_people(bundled: Place) -> None:
    """Saved keys, the parameter's, several in one text: each once, in order, newline-safe."""
    saved = [{"title": "a", "value": key(1, comment="a") + "\r\n" + key(2)}, {"value": None}]
    text = f"{key(3)} me@home\r{key(1)}\n\n# note\n{key(4)} {key(5)} two\n"
    userssh = {"type": "custom", "value": text}
    bundled.run({"userssh": userssh, "saved_keys": saved})
    assert bundled.keys() == [key(1, comment="a"), key(2), f"{key(3)} me@home", key(4),
                              f"{key(5)} two"]  # fmt: skip
    assert not (bundled.folder / "id").exists()


def test_a_file_of_the_mounted_secret(bundled: Place) -> None:
    """The type `system` names a file beside the job's pair, and no other file."""
    folder = bundled.harness.pai_dir / "ssh-secret"
    folder.mkdir()
    (folder / "team").write_text(key(7))
    bundled.run({"userssh": {"type": "system", "value": "../../team"}})
    assert bundled.keys() == [key(7)]


# --- keys as texts -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (f'command="rm -rf /" {key()}', "has options in front of the key"),
        (f"no-pty,{key()}", "is no public key"),
        ("ssh-rsa AAAA", "begins as a key of type ssh-rsa"),
        (key().replace("ssh-ed25519", "ssh-rsa"), "begins as a key of type ssh-rsa"),
        (key(kind="ssh-dss"), "is no public key"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0\n", "is a part of a private key"),
    ],
)
def test_what_is_no_key(line: str, says: str) -> None:
    """It is named by its line, never shown."""
    complaints: list[str] = []
    found = list(namespace["public_keys"](f"\n{line}", "text", complaints))
    assert found == []
    assert len(complaints) == 1
    assert complaints[0].startswith("text, line 2: it ")
    assert says in complaints[0]
    assert "rm" not in complaints[0].replace("from", "")
    assert "c2VjcmV0" not in complaints[0]


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    """Whatever it is, only keys come out, each on one line."""
    for name, line in namespace["public_keys"](f"{text}\n{key()}\n", "text", []):
        assert line.isprintable()
        assert line.startswith(name)


@given(st.binary(min_size=32, max_size=32))
def test_public_keys_are_those_of_the_standard(seed: bytes) -> None:
    """As OpenSSL makes them of the same seed."""
    der = bytes.fromhex("302e020100300506032b657004220420") + seed
    done = subprocess.run(["openssl", "pkey", "-inform", "DER", "-pubout", "-outform", "DER"],
                          input=der, capture_output=True, check=True)  # fmt: skip
    assert done.stdout[-32:] == namespace["ed25519_public"](seed)

"""The key pair of the job."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.modules.ssh_setup.conftest import Place, key, own_file


def test_every_instance_makes_the_same_key(bundled: Place) -> None:
    """From the job's rendezvous key; OpenSSH reads what we write, and finds the same public key."""
    bundled.run({"jobssh": True})
    private, public = bundled.folder / "id", (bundled.folder / "id.pub").read_text()
    read = subprocess.run(
        ["ssh-keygen", "-y", "-f", private], capture_output=True, text=True, check=True
    )
    assert read.stdout.split()[:2] == public.split()[:2]
    seed = own_file("keys").derived(b"s" * 32, b"the job")
    assert own_file("keys").ed25519_pair(seed, "pai-job-ssh") == (
        private.read_bytes(),
        public.strip(),
    )


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
    pair = own_file("keys").ed25519_pair(b"m" * 32, "mounted")
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


def test_a_pair_that_is_none(place: Place) -> None:
    """A public key that is garbage ends it, without showing what it was."""
    args = {"jobssh": True, "private_key": "secret-text", "public_key": "garbage"}
    failure = place.harness.run("ssh_setup", args, place.env).failure
    assert failure is not None
    assert "key pair of the job cannot be used" in failure.message
    assert "garbage" not in failure.message
    assert "secret-text" not in failure.message
    assert place.harness.problems("ssh_setup", {"private_key": "x"})

"""mount_storage's object stores: S3 and Azure Blob servers, through rclone and FUSE."""

from __future__ import annotations

import os
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pairun.base import system
from pairun.contract.arguments import build
from pairun.contract.loading import load_module
from pairun.executor.child import perform
from pairun.host import mounts
from pairun.host.context import HostContext
from pairun.module import Secret
from tests.real.conftest import Lab, _served

ROOT = Path(__file__).parents[2]
MODULE = load_module("mount_storage", str(ROOT / "modules" / "mount_storage"))
TOOLS = ROOT / "build" / "bundle" / "tools"

Report = dict[str, Any]


@pytest.fixture(scope="module", params=["bundled", "installed"])
def path_of_tools(request: pytest.FixtureRequest) -> Mapping[str, str]:
    """The variables with which our own rclone is found in an empty image, or the image's own."""
    if not Path("/dev/fuse").exists():
        pytest.skip("this machine has no /dev/fuse")
    if request.param == "bundled":
        if not (TOOLS / "rclone").exists():
            pytest.skip("needs bundle/rclone.sh")
        return {"PATH": "/nothing", "PAIRUN_TOOLS": str(TOOLS)}
    if not (shutil.which("rclone") and shutil.which("fusermount")):
        pytest.skip("needs rclone and fuse")
    return {"PATH": os.environ["PATH"]}


@pytest.fixture(scope="module")
def s3(lab: Lab) -> Iterator[Mapping[str, str]]:
    """An S3 server with the bucket ``team``."""
    for served in _served(lab, ("s3", "up"), ("s3", "down")):
        request = urllib.request.Request(f"{served['LAB_S3_URL']}/team", method="PUT")
        urllib.request.urlopen(request, timeout=10).close()
        yield served


@pytest.fixture(scope="module")
def azure(lab: Lab) -> Iterator[Mapping[str, str]]:
    """An Azure Blob server with the container ``team``."""
    for served in _served(lab, ("azure", "up"), ("azure", "down")):
        place, _, token = served["LAB_AZURE_SAS_URL"].partition("?")
        url = f"{place}/team?restype=container&{token}"
        headers = {"x-ms-version": "2020-10-02", "Content-Length": "0"}
        with_method = urllib.request.Request(url, method="PUT", headers=headers)
        try:
            urllib.request.urlopen(with_method, timeout=10).close()
        except urllib.error.HTTPError as e:
            assert e.code == 409, "the container is there already"
        yield served


class Place:
    """A mount point and a volume of their own."""

    def __init__(self, tmp: Path, env: Mapping[str, str]) -> None:
        self.mount, self.pai = tmp / "mnt", tmp / "pai"
        self.pai.mkdir()
        self._env = env

    def run(self, storage: Mapping[str, Any], **more: Any) -> Report:
        """One attempt."""
        args = {"storages": [{"path": str(self.mount), **storage}], **more}
        module, problems = build(MODULE, args)
        assert module is not None, problems
        return perform(module, HostContext(self._env, str(self.pai)))._asdict()

    @property
    def source(self) -> str | None:
        """What the mount table shows at the mount point."""
        found = [m.source for m in mounts.mounts() if m.target == str(self.mount)]
        return found[-1] if found else None


@pytest.fixture
def place(tmp_path: Path, path_of_tools: Mapping[str, str]) -> Iterator[Place]:
    """An empty one; what is mounted there is gone afterwards."""
    place = Place(tmp_path, path_of_tools)
    yield place
    while place.source is not None:
        system.unmount(str(place.mount), mounts.MNT_DETACH)


def s3_storage(served: Mapping[str, str], **more: Any) -> dict[str, Any]:
    """The bucket."""
    return {
        "type": "s3",
        "bucket": "team",
        "endpoint": served["LAB_S3_URL"],
        "region": "us-east-1",
        "access_key": Secret("lab"),
        "secret_key": Secret("lab-secret-key"),
        **more,
    }


def azure_storage(served: Mapping[str, str], **more: Any) -> dict[str, Any]:
    """The container, by a token that is a part of the address."""
    sas = Secret(served["LAB_AZURE_SAS_URL"])
    return {"type": "azureblob", "container": "team", "sas_url": sas, **more}


@pytest.fixture(params=["s3", "azureblob"])
def storage(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Either kind, in a directory of the test's own."""
    kind = request.param
    served = request.getfixturevalue("s3" if kind == "s3" else "azure")
    make = s3_storage if kind == "s3" else azure_storage
    return make(served, subdir=f"%USER/{os.urandom(4).hex()}")


def test_what_is_written_is_in_the_store(place: Place, storage: dict[str, Any]) -> None:
    """Also what was written last, in the middle of a file: unmounting waits until it is stored."""
    report = place.run(storage, user="al")
    assert report["outcome"] == "changed", report
    assert place.run(storage, user="al")["outcome"] == "ok"
    (place.mount / "a.txt").write_text("hello")
    with (place.mount / "b.bin").open("w+b") as file:
        file.write(b"0" * 100)
        file.seek(50)
        file.write(b"1")
    assert place.run(storage, user="al", state="absent")["outcome"] == "changed"
    assert place.source is None
    assert place.run(storage, user="al", state="absent")["outcome"] == "ok"
    # No key and no copy stays behind.
    left = [p.name for p in place.pai.rglob("*") if p.is_file() and p.suffix != ".log"]
    assert left == []
    report = place.run({**storage, "read_only": True}, user="al")
    assert report["outcome"] == "changed", report
    assert (place.mount / "a.txt").read_text() == "hello"
    assert (place.mount / "b.bin").read_bytes() == b"0" * 50 + b"1" + b"0" * 49
    with pytest.raises(OSError, match="Read-only"):
        (place.mount / "c").write_text("x")


def test_no_secret_shows(place: Place, storage: dict[str, Any]) -> None:
    """Not in arguments, not in the mount table; the one file with it is for its owner alone."""
    secrets = [v.reveal() for v in storage.values() if isinstance(v, Secret)]
    secrets = [s for s in secrets if s != "lab"]
    place.run(storage, user="al")
    processes = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert "rclone mount" in processes.stdout
    table = Path("/proc/self/mountinfo").read_text()
    for secret in secrets:
        assert secret not in processes.stdout
        assert secret not in table
        assert secret.partition("sig=")[2] not in table or "sig=" not in secret
    holders = [p for p in place.pai.rglob("*") if p.is_file() and secrets[0] in p.read_text()]
    assert [p.suffix for p in holders] == [".conf"]
    assert holders[0].stat().st_mode & 0o777 == 0o600


def test_rclone_that_died_is_started_again(place: Place, s3: Mapping[str, str]) -> None:
    """The mount that answers no more is taken away, and made anew."""
    storage = s3_storage(s3)
    place.run(storage)
    (place.mount / "here").write_text("1")
    pid = subprocess.run(
        ["pgrep", "-f", f"rclone mount .*{place.mount}"], capture_output=True, text=True, check=True
    ).stdout.split()[0]
    os.kill(int(pid), 9)
    assert place.run(storage)["outcome"] == "changed"
    assert place.run(storage)["outcome"] == "ok"
    assert (place.mount / "here").read_text() == "1"


REFUSED = [
    ({"bucket": "nothing"}, "permanent", "no such bucket or directory: s3 s3:nothing@127.0.0.1"),
    ({"endpoint": "http://127.0.0.1:1"}, "transient", "cannot be reached"),
]


@pytest.mark.parametrize(("change", "kind", "says"), REFUSED)
def test_a_refusal_is_said_and_nothing_is_mounted(
    place: Place, s3: Mapping[str, str], change: dict[str, Any], kind: str, says: str
) -> None:
    """The store is asked before anything is mounted."""
    report = place.run({**s3_storage(s3), **change})
    assert (report["outcome"], report["kind"]) == ("failed", kind)
    assert says in report["message"]
    assert place.source is None


def test_a_wrong_token_is_refused(place: Place, azure: Mapping[str, str]) -> None:
    """Azure's server says so; the token is not shown."""
    wrong = azure["LAB_AZURE_SAS_URL"].replace("sig=", "sig=A")
    report = place.run(azure_storage(azure, sas_url=Secret(wrong)))
    assert (report["outcome"], report["kind"]) == ("failed", "permanent"), report
    assert "the server refuses azureblob azureblob:team" in report["message"]
    assert "sig=" not in report["message"]


def test_any_remote_of_rclone_is_mounted(place: Place, s3: Mapping[str, str]) -> None:
    """With the settings that its documentation gives."""
    settings = {
        "type": "s3",
        "provider": "Other",
        "endpoint": s3["LAB_S3_URL"],
        "access_key_id": "lab",
        "secret_access_key": Secret("lab-secret-key"),
    }
    report = place.run({"type": "rclone", "settings": settings, "remote": "team"})
    assert report["outcome"] == "changed", report
    assert place.source == "s3:team"

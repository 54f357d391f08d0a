"""mount_storage against real NFS and SMB servers, in a virtual machine whose kernel has both."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attr
import attrs
import pytest

from tests.real.conftest import Lab

ROOT = Path(__file__).parents[2]
NFS = "nfs 127.0.0.1:/data"
SMB = "samba //localhost/share"

Cases = Mapping[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def cases(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Cases:
    """Everything that was tried, in one boot: the report of each case by its name."""
    job, output = tmp_path_factory.mktemp("job"), tmp_path_factory.mktemp("output")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "pairun", job / "site" / "pairun", ignore=ignored)
    for package in (attr, attrs):
        source = Path(str(package.__file__)).parent
        shutil.copytree(source, job / "site" / source.name, ignore=ignored)
    shutil.copytree(ROOT / "modules", job / "modules", ignore=ignored)
    shutil.copy(Path(__file__).parent / "storage_in_vm.py", job)
    (job / "run.sh").write_text("exec python3 /job/storage_in_vm.py\n")
    lab("vm", "run", str(job), "400", str(output))
    found: dict[str, list[dict[str, Any]]] = {}
    for line in (output / "cases").read_text().splitlines():
        report = json.loads(line)
        found.setdefault(report.pop("case"), []).append(report)
    assert "end" in found
    return found


def one(cases: Cases, name: str) -> dict[str, Any]:
    """The one report of a case."""
    (report,) = cases[name]
    return report


@pytest.mark.parametrize(("kind", "shown"), [("nfs", NFS), ("samba", SMB)])
def test_a_share_is_mounted_by_the_kernel_alone(cases: Cases, kind: str, shown: str) -> None:
    """It is mounted, a second run changes nothing, and unmounting does the same."""
    path = "/mnt/nfs" if kind == "nfs" else "/mnt/cifs"
    mounts = one(cases, f"{kind} mounts")
    assert (mounts["outcome"], mounts["message"]) == ("changed", f"mounted {shown} at {path}")
    assert mounts["mounted"] == [path]
    assert one(cases, f"{kind} again")["outcome"] == "ok"
    gone = one(cases, f"{kind} unmounts")
    assert (gone["outcome"], gone["mounted"]) == ("changed", [])
    assert one(cases, f"{kind} unmounts again")["outcome"] == "ok"


@pytest.mark.parametrize("kind", ["nfs", "samba"])
def test_read_only_can_be_read_and_not_written(cases: Cases, kind: str) -> None:
    """What was written before is there; asking for writing then is an error."""
    report = one(cases, f"{kind} read-only")
    assert (report["outcome"], report["written"], report["read"]) == ("ok", False, kind)
    wanted = one(cases, f"{kind} is read-only, not wanted")
    assert (wanted["outcome"], wanted["kind"]) == ("failed", "permanent")
    assert "already mounted read-only" in wanted["message"]


@pytest.mark.parametrize(("kind", "shown"), [("nfs", NFS), ("samba", SMB)])
def test_a_sub_directory_is_made_and_mounted_alone(cases: Cases, kind: str, shown: str) -> None:
    """With the user's and the job's names; it is told from its neighbours, and lies in the share."""
    made = one(cases, f"{kind} sub-directory")
    assert made["outcome"] == "changed"
    assert f"{shown}/homes/alice/alice~train" in made["message"]
    assert len(made["mounted"]) == 1
    assert one(cases, f"{kind} sub-directory again")["outcome"] == "ok"
    other = one(cases, f"{kind} another sub-directory")
    assert "already mounted from elsewhere" in other["message"]
    assert "homes/alice/alice~train" in other["message"]
    assert one(cases, f"{kind} sub-directory seen from above")["found"] == "own"
    missing = one(cases, f"{kind} read-only without it")
    assert "does not exist, and a read-only mount" in missing["message"]
    assert missing["mounted"] == []


REFUSALS = [
    ("nfs missing export", "permanent", "the server has no such export: nfs 127.0.0.1:/nothing"),
    ("nfs refuses", "permanent", f"the server refuses {NFS}"),
    ("nfs nothing listens", "transient", "cannot be reached: nothing listens there"),
    ("nfs silent", "timeout", f"the server of {NFS} does not answer"),
    ("nfs bad option", "permanent", f"the kernel refuses the options of {NFS}"),
    ("nfs no name", "transient", "no.such.host.invalid cannot be resolved"),
    ("samba wrong password", "permanent", f"the server refuses {SMB}"),
    ("samba missing share", "permanent", "the server has no such share: samba //localhost/nothing"),
    ("samba nothing listens", "transient", "cannot be reached: nothing listens there"),
    ("samba silent", "timeout", f"the server of {SMB} does not answer"),
    ("samba no name", "transient", "no.such.host.invalid cannot be resolved"),
    ("not empty", "permanent", "the mount point /mnt/full is not empty: 'x' is in it"),
    ("a file", "permanent", "the mount point /mnt/file is not a directory"),
    ("all or nothing", "permanent", f"the server refuses {SMB}"),
    ("two at one by a link", "permanent", "two storages at one mount point: /mnt/nfs"),
]


@pytest.mark.parametrize(("case", "kind", "says"), REFUSALS, ids=[case for case, _, _ in REFUSALS])
def test_a_refusal_is_said_and_nothing_stays_mounted(
    cases: Cases, case: str, kind: str, says: str
) -> None:
    """Each in its words, with its kind."""
    report = one(cases, case)
    assert (report["outcome"], report["kind"]) == ("failed", kind)
    assert says in report["message"]
    assert report["mounted"] == []


def test_what_was_refused_can_be_allowed(cases: Cases) -> None:
    """The same storage, once the server exports it to this host."""
    assert one(cases, "nfs refuses no more")["outcome"] == "changed"


def test_a_mount_from_elsewhere_stays(cases: Cases) -> None:
    """Another server's or another export's; what is there is named."""
    for name in ("from elsewhere", "another export"):
        report = one(cases, name)
        assert report["kind"] == "permanent"
        assert (
            "/mnt/nfs is already mounted from elsewhere: nfs4 127.0.0.1:/data"
            in (report["message"])
        )
        assert report["mounted"] == ["/mnt/nfs"]


def test_a_password_may_be_anything_and_is_seen_nowhere(cases: Cases) -> None:
    """Commas, quotes, spaces, backslashes: it opens the share, and no table or kernel log has it."""
    reports = cases["samba password"]
    assert len(reports) == 5
    for report in reports:
        assert report["outcome"] == "changed", report
        assert report["shown"] == []
        assert not report["logged"]


def test_one_storage_lies_in_another(cases: Cases) -> None:
    """The outer one is mounted first and unmounted last, whatever order they are given in."""
    report = one(cases, "inner before outer")
    assert report["message"] == f"mounted {NFS} at /mnt/nfs, {SMB} at /mnt/nfs/inner"
    assert one(cases, "inner before outer again")["outcome"] == "ok"
    gone = one(cases, "inner and outer unmount")
    assert (gone["message"], gone["mounted"]) == ("unmounted /mnt/nfs/inner, /mnt/nfs", [])


def test_two_at_one_mount_point_never_begin(cases: Cases) -> None:
    """The arguments themselves are refused."""
    (problem,) = one(cases, "two at one")["problems"]
    assert "two storages at one mount point" in problem


def test_a_server_that_hangs_after_the_mount_holds_nobody(cases: Cases) -> None:
    """The check says which storage does not answer, and the mount goes all the same."""
    report = one(cases, "hangs after the mount")
    assert (report["outcome"], report["kind"]) == ("failed", "timeout")
    assert "does not answer within 2s" in report["message"]
    gone = one(cases, "hanging and unmounted")
    assert (gone["outcome"], gone["mounted"]) == ("changed", [])
    assert gone["seconds"] < 60


def test_the_module_adds_little_to_the_kernels_time(cases: Cases) -> None:
    """A few child processes, which this emulated machine makes slowly: no second mount."""
    report = one(cases, "speed")
    assert report["module"] < 5 * report["kernel"] + 1, report


def test_nothing_is_mounted_at_the_end(cases: Cases) -> None:
    """Every case has put away what it made."""
    assert one(cases, "end")["mounted"] == []

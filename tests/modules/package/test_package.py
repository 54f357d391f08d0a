"""The module package, with programs that play each distribution's."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pairun.testing import Outcome
from pairun.testing.runs import run_once

if TYPE_CHECKING:
    from tests.modules.conftest import Harness

PROGRAMS = {
    "debian": ("apt-get", "dpkg-query", "dpkg"),
    "fedora": ("dnf", "rpm"),
    "minimal": ("microdnf", "rpm"),
    "centos": ("yum", "rpm"),
    "alpine": ("apk",),
}
PROGRAM = """#!{python} -IS
import json, os, sys
root, name, args = {root!r}, os.path.basename(sys.argv[0]), sys.argv[1:]
with open(root + "/asked", "a") as f:
    f.write(json.dumps([name, *args]) + chr(10))
with open(root + "/installed") as f:
    there = f.read().split()
if name == "dpkg-query":
    for n in there:
        print("install ok installed", n, "amd64", "awk, mail (= 2)" if n == "base" else "", sep=chr(9))
    sys.exit(0)
if name == "rpm" or args[:1] == ["info"]:
    sys.exit(args[-1] not in there)
with open(root + "/steps") as f:
    steps = json.load(f)
if steps:
    code, text = steps.pop(0)
    with open(root + "/steps", "w") as f:
        json.dump(steps, f)
    print(text, file=sys.stderr)
    if code:
        sys.exit(code)
for command in ("install", "add"):
    if command in args:
        added = [a for a in args[args.index(command) + 1:] if a[0] != "-"]
        with open(root + "/installed", "a") as f:
            f.write("".join(" " + os.path.basename(a).partition("_")[0] for a in added))
"""
BUSY = (
    "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 42 (unattended-upgr)\n"
    "E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), is another process using it?"
)
OFFLINE = "W: Failed to fetch http://me:s3cret@deb.example.com/x  Temporary failure resolving 'deb.example.com'"


class Image:
    """An image of a distribution, below the test's directory.

    Attributes:
        lists: whether apt has its lists.
        release: what os-release says.
    """

    def __init__(self, harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
        self._harness = harness
        self.folder = harness.tmp / "image"
        (self.folder / "bin").mkdir(parents=True)
        (harness.tmp / "cache").mkdir()
        self.steps([])
        (self.folder / "installed").write_text("base")
        self.lists = True
        self.release: bytes | None = None
        monkeypatch.setattr(os, "geteuid", lambda: 0)

    def _list_dir(self, path: str) -> Any:
        if path != "/var/lib/apt/lists":
            return NotImplemented
        return ["deb.example.com_main_binary-amd64_Packages.lz4"] if self.lists else ["lock"]

    def _read_file(self, path: str, **_: Any) -> Any:
        return self.release if path.endswith("/os-release") else NotImplemented

    def has(self, *programs: str) -> None:
        """Put programs there."""
        text = PROGRAM.replace("{python}", sys.executable).replace(
            "{root!r}", repr(str(self.folder))
        )
        for name in programs:
            (self.folder / "bin" / name).write_text(text)
            (self.folder / "bin" / name).chmod(0o755)

    def steps(self, steps: list[Any]) -> None:
        """What the installer says at each call, and with which code it ends."""
        (self.folder / "steps").write_text(json.dumps(steps))

    def asked(self) -> list[str]:
        """What the installers were asked, without options."""
        path = self.folder / "asked"
        calls = (
            [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        )
        words = [" ".join(w for w in call if w[0] != "-") for call in calls]
        return [w for w in words if not w.startswith(("dpkg-query", "rpm", "apk info"))]

    def options(self) -> list[str]:
        """The options of the last installation."""
        lines = (self.folder / "asked").read_text().splitlines()
        calls = [json.loads(line) for line in lines]
        (*_, last) = (c for c in calls if "install" in c or "add" in c)
        return [w for w in last if w.startswith("-")]

    def run(self, args: dict[str, Any], *, deadline: float | None = None) -> Outcome:
        """Run the module, and once more where it did well: the second run changes nothing.

        Without a deadline, waiting takes no time.
        """
        cache = {"cache": str(self._harness.tmp / "cache")}
        module = self._harness.make("package", {**cache, **args})
        answers: dict[str, Any] = {"list_dir": self._list_dir, "read_file": self._read_file}
        if deadline is None:
            answers["sleep"] = None
        env = {"PATH": str(self.folder / "bin")}
        world = self._harness.world(env, deadline=deadline, answers=answers)
        outcome = run_once(module, world)
        if outcome.failure is None:
            before = self.asked()
            again = run_once(module, world)
            assert again.verdict is not None
            assert again.verdict.kind == "no_change"
            assert self.asked() == before
        return outcome


@pytest.fixture
def image(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> Image:
    """An image without programs."""
    return Image(harness, monkeypatch)


TABLE: list[dict[str, Any]] = [
    {"what": "what is installed asks nobody", "names": ["base"], "verdict": "no_change", "asked": []},
    {"what": "so does what something installed provides", "names": ["mail", "awk", "base:amd64"],
     "verdict": "no_change", "asked": []},
    {"what": "apt with lists asks for no new ones", "names": ["rsync", "base"],
     "asked": ["apt-get install rsync"]},
    {"what": "apt without lists fetches them", "names": ["rsync"], "lists": False,
     "asked": ["apt-get update", "apt-get install rsync"]},
    {"what": "apt with lists that are too old", "names": ["rsync"],
     "steps": [[100, "E: Failed to fetch http://deb.example.com/rsync.deb  404  Not Found"]],
     "asked": ["apt-get install rsync", "apt-get update", "apt-get install rsync"]},
    {"what": "apt with lists that do not have it yet", "names": ["rsync"],
     "steps": [[100, "E: Unable to locate package rsync"]],
     "asked": ["apt-get install rsync", "apt-get update", "apt-get install rsync"]},
    {"what": "apt, an unknown name", "names": ["rsnyc"], "lists": False,
     "steps": [[0, ""], [100, "Reading package lists...\nE: Unable to locate package rsnyc"]],
     "failure": "permanent", "fault": "user", "says": "rsnyc cannot be installed: E: Unable to locate package rsnyc"},
    {"what": "apt without a network", "names": ["rsync"], "lists": False, "steps": [[0, OFFLINE]],
     "failure": "transient", "fault": "platform", "says": "Temporary failure resolving", "asked": ["apt-get update"]},
    {"what": "apt, another one is at work", "names": ["rsync"], "steps": [[100, BUSY], [100, BUSY]],
     "asked": ["apt-get install rsync"] * 3,
     "log": "the database of packages is locked by process 42 (unattended-upgr); waiting"},
    {"what": "apt after an attempt that was killed", "names": ["rsync"],
     "steps": [[100, "E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem."]],
     "asked": ["apt-get install rsync", "dpkg", "apt-get install rsync"], "log": "was interrupted"},
    {"what": "apt, a full disk", "names": ["rsync"],
     "steps": [[100, "E: You don't have enough free space in /var/cache/apt/archives/."]],
     "failure": "permanent", "fault": "platform", "says": "enough free space"},
    {"what": "apt, whatever else", "names": ["rsync"], "steps": [[100, "E: Sub-process returned an error code"]],
     "failure": "transient", "says": "rsync cannot be installed: E: Sub-process returned"},
    {"what": "from the cache", "names": ["rsync"], "cache": ["rsync/rsync_1_amd64.deb", "rsync/libpopt0_1_amd64.deb"],
     "lists": False, "asked": ["apt-get install {cache}/rsync/libpopt0_1_amd64.deb {cache}/rsync/rsync_1_amd64.deb"],
     "option": "-oDir::Etc::sourcelist=/dev/null", "message": "1 package installed, 1 from "},
    {"what": "a cache that is not enough is logged, and the network is used", "names": ["rsync"],
     "cache": ["rsync/rsync_1_amd64.deb"], "steps": [[100, "E: Unmet dependencies"]],
     "asked": ["apt-get install {cache}/rsync/rsync_1_amd64.deb", "apt-get install rsync"],
     "log": "does not have all packages: E: Unmet dependencies"},
    {"what": "a part from the cache", "names": ["rsync", "less"], "cache": ["rsync/rsync_1_amd64.deb", "less/x.rpm"],
     "asked": ["apt-get install {cache}/rsync/rsync_1_amd64.deb", "apt-get install less"],
     "message": "2 packages installed, 1 from "},
    {"what": "dnf", "image": "fedora", "names": ["rsync"], "asked": ["dnf install rsync"],
     "option": "--setopt=install_weak_deps=0"},
    {"what": "dnf from the cache", "image": "fedora", "names": ["rsync"], "cache": ["rsync/rsync_1.rpm"],
     "asked": ["dnf install {cache}/rsync/rsync_1.rpm"], "option": "--disablerepo=*"},
    {"what": "dnf, an unknown name", "image": "fedora", "names": ["rsnyc"],
     "steps": [[1, "No match for argument: rsnyc\nError: Unable to find a match: rsnyc"]],
     "failure": "permanent", "fault": "user", "says": "Error: Unable to find a match: rsnyc"},
    {"what": "dnf without a network", "image": "fedora", "names": ["rsync"],
     "steps": [[1, "Error: Failed to download metadata for repo 'fedora': Cannot prepare internal mirrorlist: Curl error (6)"]],
     "failure": "transient", "fault": "platform", "says": "Curl error (6)"},
    {"what": "microdnf", "image": "minimal", "names": ["rsync"], "asked": ["microdnf install rsync"]},
    {"what": "microdnf, an unknown name", "image": "minimal", "names": ["rsnyc"],
     "steps": [[1, "error: No package matches 'rsnyc'"]], "failure": "permanent", "fault": "user", "says": "No package"},
    {"what": "yum", "image": "centos", "names": ["rsync"], "asked": ["yum install rsync"]},
    {"what": "apk", "image": "alpine", "names": ["rsync"], "asked": ["apk add rsync"], "option": "--no-cache"},
    {"what": "apk from the cache", "image": "alpine", "names": ["rsync"], "cache": ["rsync/rsync_1.apk"],
     "asked": ["apk add {cache}/rsync/rsync_1.apk"], "option": "--no-network"},
    {"what": "apk, an unknown name", "image": "alpine", "names": ["rsnyc"],
     "steps": [[1, "ERROR: unable to select packages:\n  rsnyc (no such package):\n    required by: world[rsnyc]"]],
     "failure": "permanent", "fault": "user", "says": "ERROR: unable to select packages"},
    {"what": "apk without a network", "image": "alpine", "names": ["rsync"],
     "steps": [[1, "WARNING: fetching https://dl.example.com: temporary error (try again later)\nERROR: unable to select packages:"]],
     "failure": "transient", "fault": "platform", "says": "temporary error"},
    {"what": "apk, another one is at work", "image": "alpine", "names": ["rsync"],
     "steps": [[99, "ERROR: Unable to lock database: Resource temporarily unavailable"]],
     "asked": ["apk add rsync"] * 2, "log": "locked by another process"},
]  # fmt: skip


@pytest.mark.parametrize("row", TABLE, ids=[str(row["what"]) for row in TABLE])
def test_table(harness: Harness, image: Image, row: dict[str, Any]) -> None:
    """Every row holds; what did well changes nothing the second time."""
    known = {"what", "image", "names", "lists", "steps", "cache", "verdict", "asked", "option", "log",
             "message", "failure", "fault", "says"}  # fmt: skip
    assert row.keys() <= known
    image.has(*PROGRAMS[row.get("image", "debian")])
    image.lists = row.get("lists", True)
    image.steps(row.get("steps", []))
    cache = harness.tmp / "cache"
    for name in row.get("cache", []):
        (cache / name).parent.mkdir(exist_ok=True)
        (cache / name).touch()
    outcome = image.run({"names": row["names"]})
    failure = outcome.failure
    assert (failure.kind if failure else None) == row.get("failure"), failure
    assert outcome.verdict is not None
    assert outcome.verdict.kind == row.get("verdict", "will_change")
    if failure is not None:
        assert failure.fault == row.get("fault", "unknown")
        assert row["says"] in failure.message
        assert "s3cret" not in failure.message
    if "asked" in row:
        assert image.asked() == [a.replace("{cache}", str(cache)) for a in row["asked"]]
    if "option" in row:
        assert row["option"] in image.options()
    if "log" in row:
        assert len([line for line in harness.log if row["log"] in line]) == 1
    if "message" in row:
        assert outcome.result is not None
        assert row["message"] in outcome.result.message


def test_no_recommendations_and_no_dialogue(image: Image) -> None:
    """Only what was asked for comes, and nobody is asked anything."""
    image.has(*PROGRAMS["debian"])
    image.run({"names": ["rsync"]})
    assert {"--yes", "--no-install-recommends", "-oAPT::Cmd::Pattern-Only=true"} <= set(
        image.options()
    )


def test_no_root(image: Image, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else than root gets a clear word, unless everything is there."""
    image.has(*PROGRAMS["debian"])
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert image.run({"names": ["base"]}).failure is None
    failure = image.run({"names": ["rsync"]}).failure
    assert failure is not None
    assert (failure.kind, failure.fault) == ("permanent", "user")
    assert failure.message == "installing rsync needs root, and this runs as user 1000"
    assert image.asked() == []


def test_the_time_is_up_before_the_other_one(image: Image) -> None:
    """With the attempt's time used up, the failure says who holds the lock."""
    image.has(*PROGRAMS["debian"])
    image.steps([[100, BUSY]] * 50)
    failure = image.run({"names": ["rsync"]}, deadline=time.monotonic() + 3.5).failure
    assert failure is not None
    assert failure.kind == "conflict"
    assert "locked by process 42 (unattended-upgr), for " in failure.message


@pytest.mark.parametrize(
    ("release", "programs", "program"),
    [
        (b"ID=fedora\n", ("apt-get", "dpkg-query", "dnf", "rpm"), "dnf"),
        (b'ID="rocky"\nID_LIKE="rhel centos fedora"\n', ("apk", "yum", "rpm"), "yum"),
        (b"NAME=Mint\nID=linuxmint\nID_LIKE='ubuntu debian'\n", ("apt-get", "dpkg-query", "dnf"), "apt-get"),
        (b"ID=alpine\n", ("dnf", "rpm", "apk"), "apk"),
        (b"ID=own\n", ("microdnf", "rpm"), "microdnf"),
        (None, ("dnf", "microdnf", "rpm"), "dnf"),
    ],
)  # fmt: skip
def test_the_distributions_own_program(
    image: Image, release: bytes | None, programs: tuple[str, ...], program: str
) -> None:
    """The distribution says which program is its own; without a word, the one that is there."""
    image.has(*programs)
    image.release = release
    outcome = image.run({"names": ["rsync"]})
    assert outcome.verdict is not None
    assert outcome.verdict.because == f"install rsync with {program}"


def test_an_image_without_packages(image: Image) -> None:
    """An image with no such program is told so."""
    failure = image.run({"names": ["rsync"]}).failure
    assert failure is not None
    assert (failure.kind, failure.fault) == ("permanent", "user")
    assert "has none of apt-get, dnf, microdnf, yum, apk" in failure.message


@pytest.mark.parametrize(
    "args",
    [{"names": []}, {"names": ["--purge"]}, {"names": ["bash-"]}, {"names": ["/tmp/x.deb"]},
     {"names": ["a b"]}, {"names": ["a\n"]}, {"names": ["a"], "cache": "x"}],
)  # fmt: skip
def test_wrong_arguments(harness: Harness, args: dict[str, Any]) -> None:
    """No options, removals, files or patterns come in as names."""
    assert harness.problems("package", args)


def test_a_review_does_not_look_at_this_machine(harness: Harness) -> None:
    """In the empty Pod only the run can tell."""
    assert harness.review(harness.make("package", {"names": ["a"]})) == "unknown"


def test_no_default_playbook_uses_it() -> None:
    """It is for those who ask for it."""
    root = Path(__file__).parents[3]
    for path in [*(root / "playbooks").iterdir(), *(root / "plugin_specs").iterdir()]:
        assert "package:" not in path.read_text()

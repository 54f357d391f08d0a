"""The parts of the local engine on their own."""

from __future__ import annotations

import io
import os
import pathlib
import signal
import subprocess
import sys
from typing import Any

import pytest

from pairun.engines.completionpolicy import NEVER, Ended, RolePolicy, decide
from pairun.engines.local import freeports
from pairun.engines.local.freeports import draw_uid
from pairun.engines.local.instance import MAX_OUTPUT_LINE, InstanceOutput
from pairun.engines.local.isolation import find_isolation
from pairun.errors import PairunError
from pairun.job.jobfile import load_job
from pairun.kube.ports import DEFAULT_RANGE, PortPlan, hashed_port, port_annotation, rendezvous_port
from pairun.report.live.view import View
from pairun.secrets.vault import Vault


@pytest.mark.parametrize(
    ("policies", "ended", "total", "expected"),
    [
        ([("a", 2, 1, 2)], [], 2, None),
        ([("a", 2, 1, 2)], [("a", 0)], 2, None),
        ([("a", 2, 1, 2)], [("a", 0), ("a", 0)], 2, (True, 0)),
        ([("a", 2, 1, 2)], [("a", 3)], 2, (False, 3)),
        ([("a", 3, 2, 3)], [("a", 3)], 3, None),
        ([("a", 3, 2, 3)], [("a", 3), ("a", 0), ("a", 4)], 3, (False, 3)),
        ([("a", 2, NEVER, 2)], [("a", 3)], 2, None),
        ([("a", 2, NEVER, 2)], [("a", 3), ("a", 0)], 2, (True, 0)),
        ([("a", 2, 1, NEVER)], [("a", 0)], 2, None),
        ([("a", 2, 1, NEVER)], [("a", 0), ("a", 0)], 2, (True, 0)),
        ([("a", 1, 1, 1), ("b", 1, 1, 1)], [("b", 0)], 2, (True, 0)),
        ([("a", 1, 1, NEVER), ("b", 1, 1, 1)], [("a", 0)], 2, None),
        ([("a", 1, NEVER, NEVER), ("b", 1, NEVER, NEVER)], [("a", 9), ("b", 9)], 2, (True, 0)),
    ],
)
def test_decide(policies: Any, ended: Any, total: int, expected: Any) -> None:
    """FrameworkController's rules: any role's condition decides; -1 switches one off."""
    made = decide(
        [RolePolicy(*p) for p in policies],
        [Ended(role, f"{role}-{i}", code) for i, (role, code) in enumerate(ended)],
        total,
    )
    assert (made and (made.succeeded, made.code)) == expected


class _Shown:
    """What an output shows and keeps, for pieces of input."""

    def __init__(self, folder: pathlib.Path, *secrets: str) -> None:
        self.log = folder / "output.log"
        self._screen = (folder / "screen").open("w+b", buffering=0)
        self._text = io.TextIOWrapper(self._screen)
        view = View(self._text, ["w-0", "two-0"], Vault(secrets))
        self.output = InstanceOutput(
            str(self.log), lambda line: view.output("w-0", line), Vault(secrets)
        )

    def feed(self, *pieces: bytes) -> None:
        for piece in pieces:
            os.write(self.output.writer, piece)
            self.output.read()

    def text(self) -> bytes:
        """What was shown since the last look."""
        self._screen.seek(0)
        text = self._screen.read()
        self._screen.seek(0)
        self._screen.truncate()
        return text

    def end(self) -> bytes:
        """The rest, after the end of the input."""
        self.output.close_writer()
        while not self.output.read():
            pass
        self.output.close()
        self._screen.seek(0)
        with self._screen:
            return self._screen.read()


def test_lines_are_shown_when_whole(tmp_path: pathlib.Path) -> None:
    shown = _Shown(tmp_path)
    shown.feed(b"one\ntw")
    assert shown.text() == b"w-0   | one\n"
    shown.feed(b"o\r\nthree")
    assert shown.text() == b"w-0   | two\n"
    assert shown.end() == b"w-0   | three\n"
    assert shown.log.read_bytes() == b"one\ntwo\r\nthree"


def test_endless_line(tmp_path: pathlib.Path) -> None:
    """A line without end is shown in parts, not kept in memory."""
    shown = _Shown(tmp_path)
    for _ in range(MAX_OUTPUT_LINE // 32768 + 1):
        shown.feed(b"x" * 32768)
    assert shown.text().count(b"x") > MAX_OUTPUT_LINE
    shown.end()


def test_secret_over_two_writes(tmp_path: pathlib.Path) -> None:
    """A secret that comes in two pieces is neither shown nor kept."""
    shown = _Shown(tmp_path, "open-sesame")
    shown.feed(b"say open-", b"sesame now\n")
    text = shown.end()
    assert text == b"w-0   | say ****** now\n"
    assert b"sesame" not in shown.log.read_bytes()


def test_ports(job: Any) -> None:
    """No two Pods get the same port, for their rendezvous either, and none gets one that is taken."""
    job.role("w", "true", instances=40)
    job.document["taskRoles"]["w"]["resourcePerInstance"]["ports"] = {"x": 3}
    made, _ = load_job(str(job.save()))
    assert made is not None
    asked: list[int] = []

    def free(port: int) -> bool:
        asked.append(port)
        return port % 2 == 0

    taken: set[int] = set()
    (role,) = made.roles
    plan = PortPlan(port_annotation(role.resources.ports, DEFAULT_RANGE))
    drawn: list[int] = []
    for index in range(40):
        uid = draw_uid(role, index, taken, free)
        drawn += [rendezvous_port(uid), *(n for ns in plan.of(uid, index).values() for n in ns)]
    assert len(drawn) == len(set(drawn)) == 40 * 6
    assert all(port % 2 == 0 for port in drawn)
    with pytest.raises(PairunError):
        draw_uid(role, 0, set(), lambda _: False)


def test_more_ports_than_can_differ(job: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A try ends at the first number that comes twice, so its work does not grow with the ports."""
    job.role("w", "true")
    job.document["taskRoles"]["w"]["resourcePerInstance"]["ports"] = {"x": 990}
    made, _ = load_job(str(job.save()))
    assert made is not None
    numbers: list[int] = []

    def counted(*args: Any) -> int:
        numbers.append(hashed_port(*args))
        return numbers[-1]

    monkeypatch.setattr(freeports, "hashed_port", counted)
    with pytest.raises(PairunError, match="992"):
        draw_uid(made.roles[0], 0, set(), lambda _: True)
    assert len(numbers) < freeports.TRIES * 990 / 3


@pytest.mark.parametrize("who", ["root", "user"])
@pytest.mark.parametrize("target", ["there", "not there"])
def test_volume_is_shown(tmp_path: pathlib.Path, who: str, target: str) -> None:
    """The volume appears at its place, the place's neighbours stay, and outside nothing changes."""
    if who == "root" and os.getuid() != 0:
        pytest.skip("takes root")
    parent = tmp_path / "local"
    (parent / "bin").mkdir(parents=True)
    (parent / "bin/tool").write_text("tool")
    (parent / "file").write_text("content")
    (parent / "link").symlink_to("bin")
    if target == "there":
        (parent / "pai").mkdir()
    for name in ("volume", "scratch"):
        (tmp_path / name).mkdir()
    (tmp_path / "volume/mark").write_text("mine")
    before = sorted(os.listdir(parent))
    driver = (
        "import sys, pairun.engines.local.enter as e\n"
        f"e.DEFAULT_PAI_DIR = {str(parent / 'pai')!r}\n"
        "sys.exit(e.main(*sys.argv[1:5], sys.argv[5:]))"
    )
    script = (
        f"cd {parent} && cat pai/mark bin/tool file link/tool && touch pai/new && echo .$$ "
        "&& ls /proc | grep -c '^[0-9]'; exit 3"
    )
    done = subprocess.run(
        [sys.executable, "-c", driver, who, str(tmp_path / "volume"), str(tmp_path / "scratch"),
         "exec", "/bin/sh", "-c", script],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode == 1:
        pytest.skip(f"this kernel does not let us: {done.stderr}")
    assert done.returncode == 3
    text, numbers = done.stdout.split(".")
    assert text == "minetoolcontenttool"
    # PID 1, with few processes to be seen
    assert numbers.split()[0] == "1"
    assert int(numbers.split()[1]) < 5
    assert sorted(os.listdir(parent)) == before
    assert os.listdir(tmp_path / "scratch") == []
    assert set(os.listdir(tmp_path / "volume")) == {"mark", "new"}


def test_a_stop_before_the_namespaces_exist_reaches_what_runs_in_them(
    tmp_path: pathlib.Path,
) -> None:
    """Signals are blocked from before the program; one that waits then is passed on."""
    isolation = find_isolation(str(tmp_path))
    if not isolation.namespaces:
        pytest.skip(f"no namespaces: {isolation.because}")
    for name in ("volume", "scratch"):
        (tmp_path / name).mkdir()

    def stopped_at_once() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        os.kill(os.getpid(), signal.SIGTERM)

    done = subprocess.run(
        isolation.wrap(
            ["/bin/sleep", "60"], str(tmp_path / "volume"), str(tmp_path / "scratch"), is_pid1=False
        ),
        preexec_fn=stopped_at_once,
        timeout=30,
        check=False,
    )
    assert done.returncode == 143


def test_no_namespaces_wanted(tmp_path: pathlib.Path) -> None:
    """Without namespaces the command runs as it is, and the reason is kept."""
    found = find_isolation(str(tmp_path), wanted=False)
    assert not found.namespaces
    assert found.because == "--no-namespace"
    assert found.wrap(["x"], "v", "s", is_pid1=True) == ["x"]


def test_namespaces_refused(tmp_path: pathlib.Path) -> None:
    """Where the kernel refuses, the trial says why, and the run goes on without."""
    driver = (
        "import sys\nfrom pairun.engines.local.isolation import find_isolation\n"
        "found = find_isolation(sys.argv[1])\nprint(found.namespaces, found.because)"
    )
    # In a user namespace with no further ones allowed, as many machines are configured.
    script = "echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-all "
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
         script + '--inh-caps=-all "$@"', "sh", sys.executable, "-c", driver, str(tmp_path)],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    if not done.stdout:
        pytest.skip(f"cannot be set up here: {done.stderr}")
    assert done.stdout.startswith("False ")
    assert "unshare" in done.stdout

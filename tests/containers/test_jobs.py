"""Whole jobs, init container and app container, in images that have little in common.

Every image runs the same two jobs: one that fails, and one that is stopped. Each check is a test of
its own, so that the list of tests is the table of what holds where.
"""

from __future__ import annotations

import functools
import json
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import attrs
import pytest


class _Done(Protocol):
    code: int
    out: str
    err: str
    said: str
    seconds: float


class _Podman(Protocol):
    def image(self, name: str) -> str: ...
    def run(self, *argv: str | pathlib.Path) -> _Done: ...


class _Pod(Protocol):
    podman: _Podman
    uid: str
    name: str
    volume: pathlib.Path
    config: pathlib.Path
    data: pathlib.Path
    message: pathlib.Path
    logs: pathlib.Path

    def init(self, *args: str, options: tuple[str, ...] = (), **env: str) -> _Done: ...
    def start(self, image: str, options: tuple[str, ...] = (), **env: str) -> None: ...
    def end(self) -> _Done: ...
    def wait_for(self, path: pathlib.Path) -> None: ...
    def outside(self) -> list[str]: ...
    def processes(self) -> list[str]: ...


@attrs.frozen
class Case:
    """One way to be a user's container.

    Attributes:
        image: of the laboratory.
        uid: who the command runs as.
        options: further ones of podman.
        argv: the command is a program with arguments, since there is no shell.
    """

    image: str
    uid: int = 0
    options: tuple[str, ...] = ()
    argv: tuple[str, ...] = ()


READ_ONLY = ("--read-only", "--read-only-tmpfs=false")
CASES: Mapping[str, Case] = {
    "debian-bash": Case("debian"),
    "busybox-sh-only": Case("busybox"),
    "musl-only": Case("musl"),
    "distroless-argv": Case("distroless", argv=("/busybox", "sh", "-c")),
    "nonroot-65534": Case("nonroot", uid=65534),
    "read-only-root": Case("debian", options=READ_ONLY),
    "read-only-nonroot-no-capabilities": Case(
        "busybox", 65534, (*READ_ONLY, "--user=65534", "--cap-drop=all")
    ),
}

FAILS = """\
id -u > /data/uid
echo "job $PAI_JOB_NAME at $PAI_HOST_IP_main_0"
echo trouble >&2
echo through the pipe > "$RUNTIME_LOG_PIPE"
setsid sleep 1000 >/dev/null 2>&1 &
exit 3
"""
STOPPED = """\
trap 'echo saved > /data/checkpoint; exit 7' TERM
echo > /data/ready
while :; do sleep 0.1; done
"""
HANDLERS = [
    {"id": f"bye_{event}", "name": f"After {event}", "event": event,
     "file": {"path": f"/data/after-{event}", "content": event}}
    for event in ("success", "failure", "signal")
]  # fmt: skip


@attrs.frozen
class Ran:
    """A job that has ended.

    Attributes:
        pod: where.
        init: its init container.
        app: its app container.
        outside: what it left in the app container's own file system.
    """

    pod: _Pod
    init: _Done
    app: _Done
    outside: list[str]

    def wrote(self, name: str) -> str:
        """What the job wrote to its storage."""
        return (self.pod.data / name).read_text()


Run = Callable[[str, str], Ran]


@pytest.fixture(scope="session")
def run(make_pod: Callable[[], _Pod], busybox: str) -> Iterator[Run]:
    """Runs a job in one of `CASES`; each but once."""

    @functools.cache
    def run(case: str, job: str) -> Ran:
        return _ran(make_pod(), CASES[case], job, busybox)

    yield run
    run.cache_clear()


def _ran(pod: _Pod, case: Case, job: str, busybox: str) -> Ran:
    patch: dict[str, Any] = {"patch": "user_command", "on_exit": HANDLERS}
    options = case.options
    if case.argv:
        patch["args"] = {"script": None, "argv": [*case.argv, job]}
        options = (*options, "-v", f"{busybox}:/busybox:ro")
    (pod.config / "runtime.yaml").write_text(json.dumps({"phase": "runtime", "patches": [patch]}))
    init = pod.init(RUNTIME_CONFIG=json.dumps({"commands": [job]}))
    assert init.code == 0, init.said
    pod.start(pod.podman.image(case.image), options)
    if job == STOPPED:
        pod.wait_for(pod.data / "ready")
        pod.podman.run("kill", "-s", "TERM", pod.name)
    app = pod.end()
    return Ran(pod, init, app, pod.outside())


in_every_image = pytest.mark.parametrize("case", CASES)


@in_every_image
def test_exit_code(run: Run, case: str) -> None:
    """The container ends with the command's own code."""
    ran = run(case, FAILS)
    assert ran.app.code == 3, ran.app.said
    assert int(ran.wrote("uid")) == CASES[case].uid


@in_every_image
def test_streams(run: Run, case: str) -> None:
    """The command's two streams are the container's, with what the init phase worked out."""
    ran = run(case, FAILS)
    assert "job user~job at 10.0.0.9" in ran.app.out.splitlines()
    assert "trouble\n" in ran.app.err
    assert "trouble" not in ran.app.out


@in_every_image
def test_stop(run: Run, case: str) -> None:
    """A stop reaches the command, which saves its work and chooses the exit code."""
    ran = run(case, STOPPED)
    assert ran.wrote("checkpoint") == "saved\n"
    assert ran.app.code == 7, ran.app.said
    assert ran.app.seconds < 15


@in_every_image
def test_exit_handlers(run: Run, case: str) -> None:
    """The exit handlers of the outcome run, and no others."""
    for job, event in ((FAILS, "failure"), (STOPPED, "signal")):
        ran = run(case, job)
        assert [p.name for p in ran.pod.data.glob("after-*")] == [f"after-{event}"], ran.app.said


@in_every_image
def test_termination_message(run: Run, case: str) -> None:
    """After a failure the message says so, between the tags that OpenPAI's REST server looks for."""
    text = run(case, FAILS).pod.message.read_text()
    assert text.startswith("[PAI_RUNTIME_ERROR_START]\n"), text
    assert text.rstrip().endswith("[PAI_RUNTIME_ERROR_END]")
    assert "originUserExitCode: 3\n" in text
    assert "trouble" in text


@in_every_image
def test_logs(run: Run, case: str) -> None:
    """The files that OpenPAI's log manager looks for are there, with what belongs into them."""
    ran = run(case, FAILS)
    logs = ran.pod.logs
    said = {
        n: (logs / n / "current").read_text() for n in ("user-stdout", "user-stderr", "user-all")
    }
    assert said["user-stdout"] == "job user~job at 10.0.0.9\n"
    assert said["user-stderr"] == "trouble\n"
    assert sorted(said["user-all"].splitlines()) == ["job user~job at 10.0.0.9", "trouble"]
    runtime_log = (logs / "runtime.log").read_text()
    assert "[openpai-runtime] [INFO] USER COMMAND START" in runtime_log
    assert "[openpai-runtime] through the pipe" in runtime_log
    assert "init phase: success" in (logs / "init.log").read_text()
    records = [json.loads(line) for line in (logs / "journal.jsonl").read_text().splitlines()]
    ends = [(r["phase"], r["exit_code"]) for r in records if r["type"] == "phase_end"]
    assert ends == [("init", 0), ("runtime", 3)]


@in_every_image
def test_nothing_is_left(run: Run, case: str) -> None:
    """No process goes on, and no file of ours stands outside the volume."""
    for job in (FAILS, STOPPED):
        ran = run(case, job)
        assert ran.pod.processes() == []
        assert ran.outside == []


def test_no_shell(pod: _Pod) -> None:
    """A job with commands in an image without a shell ends with 127 and says what is missing."""
    assert pod.init(RUNTIME_CONFIG=json.dumps({"commands": ["true"]})).code == 0
    pod.start(pod.podman.image("distroless"))
    ended = pod.end()
    assert ended.code == 127
    assert "there is no bash and no sh in PATH" in ended.said


def test_held(pod: _Pod) -> None:
    """A failed job is kept for people, says how to get in, and ends when they let go."""
    hold = {"id": "hold", "name": "Kept for people", "event": "failure", "deadline": "2h",
            "hold": {"time": "1h", "script": "echo > /data/held; sleep 1000"}}  # fmt: skip
    patch = {"patch": "user_command", "on_exit": [hold]}
    (pod.config / "runtime.yaml").write_text(json.dumps({"phase": "runtime", "patches": [patch]}))
    assert pod.init(RUNTIME_CONFIG=json.dumps({"commands": ["exit 3"]})).code == 0
    pod.start(pod.podman.image("busybox"))
    pod.wait_for(pod.data / "held")
    pod.podman.run("exec", pod.name, "touch", "/usr/local/pai/run/release")
    ended = pod.end()
    assert ended.code == 3, ended.said
    assert "kubectl exec -it -n default job-worker-0 -c app -- sh" in ended.said
    assert pod.processes() == []


def test_held_and_stopped(pod: _Pod) -> None:
    """A stop of the platform ends the hold within the grace time."""
    hold = {"id": "hold", "name": "Kept for people", "event": "failure", "deadline": "2h",
            "hold": {"time": "1h", "script": "echo > /data/held; sleep 1000"}}  # fmt: skip
    patch = {"patch": "user_command", "on_exit": [hold]}
    (pod.config / "runtime.yaml").write_text(json.dumps({"phase": "runtime", "patches": [patch]}))
    assert pod.init(RUNTIME_CONFIG=json.dumps({"commands": ["exit 3"]})).code == 0
    pod.start(pod.podman.image("busybox"), PAIRUN_GRACE="10s")
    pod.wait_for(pod.data / "held")
    pod.podman.run("kill", "-s", "TERM", pod.name)
    ended = pod.end()
    assert ended.code == 3, ended.said
    assert ended.seconds < 10


def test_a_child_killed_for_its_memory(pod: _Pod) -> None:
    """The kernel's kill of a child is told, and an exit spec can give it a code of its own."""
    spec = [
        {
            "containerExitCode": 221,
            "patterns": [{"platformLogRegex": "killed [0-9]+ process(es)? .* for its memory"}],
        }
    ]
    (pod.config / "runtime-exit-spec.yaml").write_text(json.dumps(spec))
    greedy = '( x=$(head -c 300000000 /dev/zero | tr "\\0" x) ) || true; exit 7'
    assert pod.init(RUNTIME_CONFIG=json.dumps({"commands": [greedy]})).code == 0
    pod.start(pod.podman.image("debian"), ("--memory=96m", "--memory-swap=96m"))
    ended = pod.end()
    assert ended.code == 221, ended.said
    assert "originUserExitCode: 7" in pod.message.read_text()
    assert "the kernel killed 1 process of this container" in pod.message.read_text()

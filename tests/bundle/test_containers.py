"""The bundle as PID 1 in container images that have little in common."""

from __future__ import annotations

import pathlib
from typing import Protocol

import pytest

IMAGES = ("debian", "busybox", "musl", "nonroot")
"""Images with a shell; distroless has none."""

UIDS = {"nonroot": 65534}

TASKS = """\
runtime:
  - append:
    id: look
    name: What an operator's own module sees
    python:
      code: |
        import os, ssl, sys
        print("module", ssl.OPENSSL_VERSION.split()[0], len(sys.path))
        result = "uid-" + str(os.getuid())
    on_exit:
      - id: bye
        name: At the end
        event: always
        python: {code: "print('bye')"}
  - append:
    id: late
    name: What only the run can tell
    cmd: {argv: [/bin/echo, "late {{ results.look.values.result }}"]}
"""


class _Volume(Protocol):
    path: pathlib.Path

    def prepare(self, *commands: str, runtime: str = "", uid: int = 0) -> None: ...


class _Running(Protocol):
    lines: list[str]
    text: str

    def wait_for(self, line: str) -> None: ...
    def end(self) -> int: ...


class _Pod(Protocol):
    volume: _Volume

    def start(self, image: str, *args: str, options: tuple[str, ...] = ()) -> _Running: ...
    def signal(self, name: str) -> None: ...


@pytest.mark.parametrize("image", [*IMAGES, "distroless"])
def test_the_version(pod: _Pod, image: str) -> None:
    """The program starts in any image, and says what is in it."""
    pod.volume.prepare()
    running = pod.start(image, "--version")
    assert running.end() == 0, running.text
    names = [line.split()[0] for line in running.lines]
    assert names[0] == "pairun"
    assert {"musl", "openssl", "python3.11", "zlib", "bzip2", "xz-utils", "jinja2"} <= set(names)


@pytest.mark.parametrize("image", IMAGES)
def test_a_phase(pod: _Pod, image: str) -> None:
    """Tasks, late values, an operator's module, the command, its code and the handlers all work."""
    uid = UIDS.get(image, 0)
    pod.volume.prepare("echo command $$", "exit 3", runtime=TASKS, uid=uid)
    running = pod.start(image)
    assert running.end() == 3, running.text
    assert "late | late uid-" + str(uid) in running.text
    assert "look | module OpenSSL 0" in running.text
    assert "bye | bye" in running.text
    assert any(line.startswith("command ") for line in running.lines), running.text


@pytest.mark.parametrize("image", IMAGES)
def test_a_stop(pod: _Pod, image: str) -> None:
    """A stop of the platform reaches the command, whose exit code is the container's."""
    uid = UIDS.get(image, 0)
    pod.volume.prepare(
        "trap 'echo stopping; exit 7' TERM", "echo ready", "while :; do sleep 0.1; done", uid=uid
    )
    running = pod.start(image)
    running.wait_for("ready")
    pod.signal("TERM")
    assert running.end() == 7, running.text
    assert "stopping" in running.lines


def test_no_shell(pod: _Pod) -> None:
    """In an image with nothing in it the tasks run, and what is missing for the command is said."""
    pod.volume.prepare(runtime=TASKS.replace("/bin/echo, ", "/hello, "))
    running = pod.start("distroless")
    assert running.end() == 127, running.text
    assert "late | late uid-0" in running.text
    assert "there is no bash and no sh in PATH" in running.text
    assert "bye | bye" in running.text


@pytest.mark.parametrize("image", ["busybox", "debian"])
def test_nothing_can_be_written(pod: _Pod, image: str) -> None:
    """A read-only root, no writable /tmp and a user without a name are enough."""
    pod.volume.prepare("echo command $$", runtime=TASKS, uid=65534)
    options = ("--read-only", "--read-only-tmpfs=false", "--user=65534", "--cap-drop=all")
    running = pod.start(image, options=options)
    assert running.end() == 0, running.text
    assert "late | late uid-65534" in running.text


def test_the_environment(pod: _Pod) -> None:
    """Variables of the image decide nothing of ours, and reach the command as they are."""
    hostile = {"PYTHONPATH": "/evil", "PYTHONHOME": "/evil", "PYTHONVERBOSE": "1",
               "LD_PRELOAD": "/evil.so", "LD_LIBRARY_PATH": "/evil", "OPENSSL_CONF": "/evil",
               "TMPDIR": "/evil"}  # fmt: skip
    names = "|".join(hostile)
    pod.volume.prepare(f"env | grep -E '^({names})=' | sort", runtime=TASKS)
    running = pod.start("busybox", options=tuple(f"-e{k}={v}" for k, v in hostile.items()))
    assert running.end() == 0, running.text
    assert [line for line in running.lines if "/evil" in line] == sorted(
        f"{k}={v}" for k, v in hostile.items() if "/evil" in v
    )


def test_the_file_is_gone(pod: _Pod) -> None:
    """A command that removes the program, and another in its place, do not cost the handlers."""
    path = pod.volume.path / "runtime"
    pod.volume.prepare(
        f"rm {path}", f"printf '#!/bin/sh\\necho intruder\\n' >{path}", f"chmod 755 {path}",
        runtime=TASKS,
    )  # fmt: skip
    running = pod.start("debian")
    assert running.end() == 0, running.text
    assert "bye | bye" in running.text
    assert "intruder" not in running.text

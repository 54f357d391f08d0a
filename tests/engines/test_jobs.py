"""Jobs that run to their end."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import pty
import re
import subprocess
import sys
from typing import Any

import pytest

from tests.engines.conftest import BOTH_MODES

# Whole jobs, phase by phase: `make test` leaves them to `make test-slow`.
pytestmark = pytest.mark.slow


@BOTH_MODES
def test_gang(job: Any, start: Any) -> None:
    """Every instance of every role runs both phases and finds the others."""
    job.role("ps", "echo I am $PAI_CURRENT_TASK_ROLE_NAME $PAI_TASK_INDEX")
    job.role(
        "Worker_1",
        "echo instances $PAI_TASK_ROLE_INSTANCES",
        "echo peer $PAI_HOST_IP_ps_0:$PAI_PORT_LIST_ps_0_http",
        "echo own $PAI_CONTAINER_SSH_PORT $PAI_HOST_IP_worker1_1",
        instances=2,
        completion={"minSucceededInstances": -1},
    )
    job.document["taskRoles"]["ps"]["completion"] = {"minSucceededInstances": -1}
    run = start()
    assert run.end() == 0
    assert "I am ps 0" in run.said("ps-0")
    ports = set()
    for index in range(2):
        said = run.said(f"Worker_1-{index}")
        assert "instances ps:0,worker1:0,worker1:1" in said
        assert any(line.startswith("peer 127.0.0.1:") and line[-1].isdigit() for line in said)
        ports.add(next(line for line in said if line.startswith("own ")).split()[1])
    assert len(ports) == 2


@BOTH_MODES
def test_own_volume(job: Any, start: Any) -> None:
    """The volume of each instance is its own and lies in its folder."""
    job.role(
        "w",
        'pai="${PAIRUN_PAI_DIR:-/usr/local/pai}"',
        'echo $PAI_TASK_INDEX > "$pai/run/mine"; sleep 0.3; echo I read $(cat "$pai/run/mine")',
        instances=2,
    )
    run = start()
    assert run.end() == 0
    for index in range(2):
        assert f"I read {index}" in run.said(f"w-{index}")
        assert (run.folder / f"w-{index}/pai/run/mine").read_text() == f"{index}\n"


@BOTH_MODES
def test_output(job: Any, start: Any) -> None:
    """Output is shown line by line under the instance's name, and kept as it came."""
    job.role("w", "echo first; printf 'no end'")
    job.role("longer_name", "echo other")
    job.document["taskRoles"]["w"]["completion"] = {"minSucceededInstances": -1}
    job.document["taskRoles"]["longer_name"]["completion"] = {"minSucceededInstances": -1}
    run = start()
    assert run.end() == 0
    assert "w-0           | first" in run.lines
    # an unfinished line is not lost
    assert any(line.startswith("no end") for line in run.said("w-0"))
    kept = (run.folder / "w-0/output.log").read_text()
    assert "first\nno end" in kept
    assert "\033[" not in run.text


@pytest.mark.parametrize(("env", "colored"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours_on_a_terminal(job: Any, env: dict[str, str], colored: bool) -> None:
    """On a terminal names have colours, unless NO_COLOR asks for none."""
    job.role("w", "echo hello")
    ours, theirs = pty.openpty()
    argv = [sys.executable, "-m", "pairun", "run", "--no-namespace", str(job.save())]
    base = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm"}
    with subprocess.Popen(argv, cwd=job.folder, stdout=theirs, env=base | env):
        os.close(theirs)
        text = b""
        # EIO is the end of a terminal whose other side is closed
        with contextlib.suppress(OSError):
            while data := os.read(ours, 65536):
                text += data
    os.close(ours)
    assert b"hello" in text
    assert (b"\033[36mw-0 | \033[0mhello" in text) is colored
    assert bool(re.search(rb"\033\[[0-9;]+m", text)) is colored


@BOTH_MODES
def test_environment_is_the_platforms(job: Any, start: Any) -> None:
    """A container gets what the platform gives it, and nothing of the caller's environment."""
    job.role("w", "env | sort")
    run = start(CALLERS_OWN="here")
    assert run.end() == 0
    names = {line.split("=", 1)[0] for line in run.said("w-0") if "=" in line}
    # what watches the test itself
    names = {n for n in names if n != "PYTHONPATH" and not n.startswith("DOOR_WATCH_")}
    assert {"PAI_USER_NAME", "FC_POD_UID", "PAI_TASK_INDEX", "PATH", "HOME"} <= names
    assert "CALLERS_OWN" not in names
    # the shell's own, what PID 1 sets, and what tells PID 1 how to end and which files count
    own = {
        "PAIRUN_GRACE",
        "PAIRUN_TERMINATION_LOG",
        "PAIRUN_PLAIN_FILES",
        "PAIRUN_ENGINE",
        "RUNTIME_LOG_PIPE",
    }
    allowed = {"PATH", "HOME", "LANG", "PWD", "SHLVL", "OLDPWD", "_", *own}
    others = {
        n for n in names if not n.startswith(("PAI_", "FC_", "PAIRUN_PAI_DIR", "NVIDIA_"))
    } - allowed
    assert not others


@BOTH_MODES
def test_secrets(job: Any, start: Any) -> None:
    """A job's secrets reach the command, and neither the screen nor a log."""
    job.document["secrets"] = {"token": "open-sesame-4711"}
    job.role(
        "w", 'test "<% $secrets.token %>" = open-sesame-$((4700 + 11))', "echo <% $secrets.token %>"
    )
    run = start()
    assert run.end() == 0
    assert "******" in run.said("w-0")
    assert "open-sesame" not in run.text
    assert "open-sesame" not in (run.folder / "w-0/output.log").read_text()
    for path in (run.folder / "w-0/pai/logs").rglob("*"):
        assert path.is_dir() or "open-sesame" not in path.read_text()
    assert (run.folder / "w-0/pai/secrets/secrets.yaml").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("completion", "codes", "result"),
    [
        ({}, [0, 7, None], 7),
        ({"minFailedInstances": 2}, [7, 9, None], 7),
        ({"minFailedInstances": -1, "minSucceededInstances": -1}, [7, 9, 0], 0),
        ({"minSucceededInstances": 1}, [0, None, None], 0),
    ],
)
def test_completion(
    job: Any, launch: Any, completion: dict[str, int], codes: list[int | None], result: int
) -> None:
    """The job's completion policy decides when it is over, and how; the rest is told to end."""
    meeting = job.folder / "meeting"
    meeting.mkdir()
    job.role(
        "w",
        f"codes=({' '.join('run' if c is None else str(c) for c in codes)})",
        "code=${codes[$PAI_TASK_INDEX]}",
        # nobody ends before everybody's command runs, and then one after the other
        f"touch {meeting}/$PAI_TASK_INDEX",
        f'until [ "$(ls {meeting} | wc -l)" = 3 ]; do sleep 0.05; done',
        "sleep 0.$((PAI_TASK_INDEX * 4))",
        "if [ $code = run ]; then echo waiting; sleep 100; fi; exit $code",
        instances=3,
        completion=completion,
    )
    run = launch("--no-namespace")
    assert run.end() == result
    (verdict,) = [x.removeprefix("failed: ") for x in run.lines if x.startswith("failed: ")] or [""]
    assert "ended with " in verdict or result == 0
    because = verdict or "the job was complete"
    stopped = [line for line in run.lines if line.endswith(f"stopped: {because}")]
    assert len(stopped) == codes.count(None)


@BOTH_MODES
def test_failed_init(job: Any, start: Any, tmp_path: pathlib.Path) -> None:
    """When init fails the command does not start, and the code is init's."""
    (tmp_path / "root/playbooks").mkdir(parents=True)
    (tmp_path / "root/playbooks/init.yaml").write_text(
        "phase: init\ntasks:\n"
        "  - {id: barrier, name: All are there, barrier: {backend: framework}}\n"
        "  - {id: image_check, name: Not here, cmd: {argv: ['false']}}\n"
        "  - {id: no, name: It fails, cmd: {argv: ['false']}, exit_codes: {transient: 252}}\n"
    )
    job.role("w", "echo the command ran")
    run = start("--root", str(tmp_path / "root"))
    assert run.end() == 252
    assert "the command ran" not in run.said("w-0")
    assert any(line.startswith("w-0") and " exit 252 (" in line for line in run.lines)
    assert "init failed: the command was not started" in " ".join(run.text.split())
    assert "failed: w-0's init phase ended with 252" in run.lines


def test_choice(job: Any, launch: Any) -> None:
    """Roles and numbers of instances can be chosen; the gang is what was chosen."""
    job.role("ps", "echo ps")
    job.role("w", "echo all $PAI_TASK_ROLE_INSTANCES", instances=5)
    run = launch("--role", "w", "--instances", "w=2")
    assert run.end() == 0
    assert "all w:0,w:1" in run.said("w-1")
    assert not run.said("ps-0")
    assert not run.said("w-2")


@pytest.mark.parametrize(
    ("args", "id_", "code"),
    [
        (["--role", "wroker"], "PR509", 1),
        (["--instances", "nine=9"], "PR509", 1),
        (["--instances", "nine=0"], "PR509", 1),
        (["--instances", "w=none"], "PR801", 2),
        (["--instances", "0"], "PR801", 2),
        (["--instances", "\N{SUPERSCRIPT TWO}"], "PR801", 2),
        (["--grace", "30"], "PR801", 2),
    ],
)
def test_wrong_choice(job: Any, launch: Any, args: list[str], id_: str, code: int) -> None:
    """A choice that does not fit is an error; one that never can is wrong usage; nothing is made."""
    job.role("worker", "echo ran").role("w", "echo ran")
    run = launch(*args)
    assert run.end() == code
    assert f"error[{id_}]" in run.text
    assert not run.folder.exists()


def test_invalid_job(job: Any, launch: Any) -> None:
    """Everything that is wrong is said at once, before anything is started or made."""
    job.role("w", "echo ran", dockerImage="absent")
    job.document["taskRoles"]["w"]["memry"] = 1
    job.document["extras"] = {"com.microsoft.pai.runtimeplugin": [{"plugin": "shh"}]}
    run = launch()
    assert run.end() == 1
    assert run.text.count("error[") >= 2
    assert not run.folder.exists()


def test_invalid_override(job: Any, launch: Any) -> None:
    """What a role's playbooks do not allow is an error before anything is started or made."""
    job.role("w", "echo ran")
    job.document["extras"] = {"pairun": {"init": [{"disable": "no_such_task"}]}}
    run = launch()
    assert run.end() == 1
    assert "error[PR401]" in run.text
    assert not run.folder.exists()


@pytest.mark.parametrize(
    ("redirection", "why"),
    [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")],
)
def test_output_that_goes_nowhere(job: Any, launch: Any, redirection: str, why: str) -> None:
    """When standard output takes nothing the job goes on, and the loss is said once, at the end."""
    job.role("w", "echo one; echo two; exit 7")
    sh = ("sh", "-c", f'exec "$@" {redirection}', "sh")
    run = launch("--no-namespace", prefix=sh)
    assert run.end() == 7
    assert run.lines[-1] == (
        f"[pairun] standard output cannot be written: {why}; "
        "the log files in pairun-run/test hold everything"
    )
    assert run.text.count("cannot be written") == 1
    assert "one\ntwo\n" in (run.folder / "w-0/output.log").read_text()


@BOTH_MODES
def test_without_gang(job: Any, start: Any) -> None:
    """A job whose tasks start on their own runs too."""
    job.document["extras"] = {"gangAllocation": False}
    job.role("w", "echo port $PAI_CONTAINER_SSH_PORT", instances=2)
    run = start()
    assert run.end() == 0
    assert any(line.startswith("port ") for line in run.said("w-1"))


@BOTH_MODES
def test_host_stays_as_it_is(job: Any, start: Any) -> None:
    """Outside the work directory a run changes nothing: no mount, no file, no directory."""

    def host() -> Any:
        table = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
        # Containers of somebody else's come and go.
        others = ("containerd", "kubelet", "/netns/", "/containers/storage/")
        mounts = [
            line
            for line in table
            if not any(name in line for name in others)
            and ("/pytest-of-" not in line or str(job.folder) in line)
        ]
        local = sorted(
            (e.name, e.stat(follow_symlinks=False).st_mtime_ns) for e in os.scandir("/usr/local")
        )
        # Tests in parallel have folders of their own.
        tmp = {e for e in os.listdir("/tmp") if "pairun" in e and not e.startswith("pairun-test-")}
        return mounts, local, tmp

    before = host()
    job.role("w", "mount >/dev/null 2>&1 || true; ls /usr/local; echo done", instances=2)
    run = start()
    assert run.end() == 0
    assert host() == before
    assert set(os.listdir(run.folder.parent.parent)) == {"job.yaml", "pairun-run"}


@BOTH_MODES
def test_summary(job: Any, start: Any, tmp_path: pathlib.Path) -> None:
    """The summary says the mode, that the image was not used, what healed and what ran at exit."""
    (tmp_path / "root/playbooks").mkdir(parents=True)
    (tmp_path / "root/playbooks/runtime.yaml").write_text(
        json.dumps(
            {
                "phase": "runtime",
                "tasks": [
                    {
                        "id": "flaky",
                        "name": "It heals",
                        "cmd": {"argv": ["sh", "-c", "test -e again || { touch again; exit 1; }"]},
                        "retries": 2,
                        "delay": "10ms",
                        "retry_on": ["transient", "permanent", "internal"],
                        "on_exit": [
                            {
                                "id": "tidy",
                                "name": "Tidy up",
                                "event": "always",
                                "cmd": {"argv": ["true"]},
                            }
                        ],
                    },
                    {
                        "id": "user_command",
                        "name": "The command",
                        "user_command": {"script": "{{ job.user_command }}"},
                    },
                ],
            }
        )
    )
    job.role("w", "echo ran")
    run = start("--root", str(tmp_path / "root"))
    assert run.end() == 0
    ran = "ran with this machine's programs, not in image"
    first = next(i for i, line in enumerate(run.lines) if line.startswith(ran))
    summary = run.lines[first:]
    assert "example.com/a/b:1" in " ".join(summary)
    assert "flaky succeeded at attempt 2" in " ".join(summary)
    assert "tidy" in " ".join(summary)
    assert all(len(line) <= 100 for line in summary)

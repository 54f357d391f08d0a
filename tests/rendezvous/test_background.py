"""A Pod gathers in a process of its own."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from pairun.base.processes import descendants, processes
from pairun.kube.ports import rendezvous_port
from pairun.module import Gathering as Background
from pairun.rendezvous.background import begin
from pairun.rendezvous.roster import JobKey
from tests.fakeapi import Fake
from tests.rendezvous.conftest import WAIT_S, Gathering

JOB = JobKey("uid", 0)
LEADER = {
    "metadata": {"uid": "uid-0"},
    "status": {
        "podIP": "127.0.0.1",
        "initContainerStatuses": [{"name": "init", "state": {"terminated": {"exitCode": 0}}}],
    },
}


@pytest.fixture
def env(tmp_path: pathlib.Path) -> Iterator[dict[str, str]]:
    """The variables of instance 1, whose leader's Pod is known to the API server."""
    fake = Fake(lambda *_: (200, LEADER))
    yield {
        "KUBE_APISERVER_ADDRESS": fake.url, "PAIRUN_API_CREDENTIALS": str(tmp_path),
        "PAIRUN_HOST_IP": "127.0.0.1", "FC_FRAMEWORK_NAMESPACE": "n", "FC_FRAMEWORK_NAME": "job",
        "FC_FRAMEWORK_UID": "uid", "FC_TASKROLE_NAME": "worker", "FC_TASK_INDEX": "1",
        "FC_POD_UID": "uid-1", "FC_POD_NAME": "job-worker-1",
    }  # fmt: skip
    fake.close()


def until(background: Background, is_so: Callable[[], object]) -> None:
    """Wait for a change."""
    end = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < end
        background.wait(end - time.monotonic())


def test_no_process_of_a_gathering_has_threads(
    gathering: Callable[[int], Gathering], env: dict[str, str], tmp_path: pathlib.Path
) -> None:
    """Each of them forks others: a lock that another thread holds at the fork stays locked in the child.

    Requests to the API server hung for their whole time limit, once in some twenty starts.
    """
    job = gathering(2)
    job.lead(key=None, job=JOB, port=rendezvous_port("uid-0"))
    before, threads = descendants(os.getpid()), set(threading.enumerate())
    background = begin(job.roles, env, str(tmp_path), lambda _: None)
    assert background is not None
    until(background, lambda: background.connected and background.leader_runs)
    more = {each.name for each in set(threading.enumerate()) - threads}
    assert all("process_request" in name for name in more)  # of the server
    its = descendants(os.getpid()) - before
    assert its
    for pid in its:
        with contextlib.suppress(FileNotFoundError):  # the search has ended
            assert len(os.listdir(f"/proc/{pid}/task")) == 1
    background.close()
    assert not descendants(os.getpid()) - before


def test_a_gathering_that_was_killed_is_over_and_can_be_closed(
    gathering: Callable[[int], Gathering], env: dict[str, str], tmp_path: pathlib.Path
) -> None:
    """An instance that has learned elsewhere what it waited for goes on; it closes what may have ended meanwhile."""
    before = descendants(os.getpid())
    background = begin(gathering(2).roles, env, str(tmp_path), lambda _: None)
    assert background is not None
    its = {p.pid for p in processes() if p.parent == os.getpid()} - before
    for pid in its:
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    background.close()
    assert background.over == "the process that gathers them was killed"

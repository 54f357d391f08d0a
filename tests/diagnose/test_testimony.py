"""Lines in which launchers name the rank that failed."""

from __future__ import annotations

import pytest

from pairun.diagnose import testimony
from pairun.diagnose.lines import Log

_SPEED = (
    "[2026-03-01 12:04:09,591] [INFO] [launch.py:158:main] nnodes={nodes}, num_local_procs=4, node_rank={node}\n"
    "[2026-03-01 12:04:16,307] [ERROR] [launch.py:259:sigkill_handler] ['/usr/bin/python3', '-u', 'train.py', "
    "'--local_rank=3', '--deepspeed'] exits with return code = -9\n"
)


@pytest.mark.parametrize(
    ("text", "rank", "code"),
    [
        (_SPEED.format(nodes=1, node=0), 3, 137),
        (_SPEED.format(nodes=2, node=1), 7, 137),
        (
            "torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGKILL\n",
            1,
            137,
        ),
        ("Exception: process 2 terminated with exit code 3\n", 2, 3),
        ("worker 1 (pid 8) exited with code -9\n", 1, 137),
        ("[launcher] rank=5 died with signal 11\n", 5, 139),
        ("Trainer #2 has crashed with exit status 3\n", 2, 3),
        (
            (
                "ray.exceptions.RayTaskError(KeyError): \x1b[36mray::Worker.train()\x1b[39m (pid=216, ip=10.0.0.1, "
                "actor_id=55e7, repr=Worker(rank=2))\n"
            ),
            2,
            None,
        ),
        (
            (
                "(Worker(rank=3) pid=217) step 4\nray.exceptions.ActorDiedError: The actor died unexpectedly\n"
                "\tclass_name: Worker\n\tactor_id: b4d6\n\tpid: 217\n"
            ),
            3,
            None,
        ),
        ("-- Process 2 terminated with the following error:\nTraceback (most recent\n", 2, None),
    ],
)
def test_a_launchers_line_names_rank_and_exit_code(text: str, rank: int, code: int | None) -> None:
    """DeepSpeed counts on a node only; torch's spawn names signals, and Ray actors or processes."""
    (each,) = testimony.reports_in(Log(text.encode()))
    assert (each.rank, each.exit_code) == (rank, code)


@pytest.mark.parametrize(
    ("text", "name", "code"),
    [
        ("Lost executor 4 on hdp-w11: Container from a bad node\n", "executor-4", None),
        (
            "Killing worker with task T actor name: x, pid: 2203, memory used: 171.44GB\n",
            "pid 2203",
            None,
        ),
        (
            (
                "ray.exceptions.RayTaskError(KeyError): ray::_Inner.train() (pid=650, ip=10.0.0.1)\n"
                "ray.exceptions.RayTaskError(KeyError): ray::execute() (pid=702, ip=10.0.0.2)\n"
            ),
            "pid 702",
            None,
        ),
    ],
)
def test_a_report_names_a_process_or_an_executor(text: str, name: str, code: int | None) -> None:
    """Of an error that another task met, the innermost one counts."""
    (each,) = testimony.reports_in(Log(text.encode()))
    assert (each.rank, each.label, each.exit_code) == (None, name, code)

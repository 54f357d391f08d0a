"""What a task costs beside other runners of tasks: the same work, on this machine, in one run.

The cost of a task is the time of 1 + N tasks less the time of one, divided by N; so what it takes
to start is no part of it. Each peer is set up as its users who care for speed do: ansible-core with
pipelining, the interpreter named, no facts gathered; pyinfra with its local connector.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.measure import ROOT, TIMES, NotMeasured, Row, Samples, in_turns, wall_ms
from benchmarks.tasks import fill, run_tasks
from pairun.plan import Task

GOALS = {"ansible-core": 50.0, "pyinfra": 3.0}
"""How many times a task of pairun must cost less than one of the peer."""

_TEXT = "one line\n"


class Cost(NamedTuple):
    """What a runner costs.

    Attributes:
        task_ms: each further task.
        start_ms: a run of one task.
    """

    task_ms: Samples
    start_ms: Samples


class Work(NamedTuple):
    """One kind of task.

    Attributes:
        name: in words.
        changes: whether a run of it counts as a change.
    """

    name: str
    changes: bool


WORK = (Work("a task that runs /bin/true", True), Work("a file that is there already", False))

Make = Callable[[pathlib.Path, Work, int], Callable[[], object]]
"""Prepares a run of so many tasks in a folder; what it returns does it."""


class Runner(NamedTuple):
    """A runner of tasks.

    Attributes:
        make: prepares its runs.
        further: the N of which the cost is found; a dearer task needs fewer to stand out.
    """

    make: Make
    further: int


def rows() -> Iterator[Row]:
    """The cost of a task beside each peer's, for work that is done and for work that is not.

    Raises:
        NotMeasured: the peers cannot be had.
    """
    ansible, pyinfra = prepare_peers()
    runners = {
        "pairun": Runner(_pairun, 100),
        f"ansible-core {ansible}": Runner(_ansible, 10),
        f"pyinfra {pyinfra}": Runner(_pyinfra, 50),
    }
    for work in WORK:
        costs = _costs(work, runners)
        ours = costs.pop("pairun")
        for name, theirs in costs.items():
            least = GOALS[name.split()[0]]
            note = (
                f"{theirs.task_ms.least / ours.task_ms.least:.1f} times less (goal: {least:g}); "
                f"one task alone {ours.start_ms.least:.0f} ms beside {theirs.start_ms.least:.0f} ms"
            )
            goal = theirs.task_ms.least / least
            yield Row(work.name, "ms", ours.task_ms, goal, name, theirs.task_ms, note)


def _costs(work: Work, runners: Mapping[str, Runner]) -> dict[str, Cost]:
    """What each runner costs. They take turns, so that a busy machine is busy for all of them."""
    with contextlib.ExitStack() as stack:
        runs: dict[str, tuple[Callable[[], object], ...]] = {
            name: tuple(
                r.make(pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory())), work, n)
                for n in (1, 1 + r.further)
            )
            for name, r in runners.items()
        }
        taken = in_turns(
            TIMES, *(functools.partial(wall_ms, run) for pair in runs.values() for run in pair)
        )
    return {
        name: Cost(many.less(one).times(1 / runners[name].further), one)
        for name, one, many in zip(runs, taken[::2], taken[1::2], strict=True)
    }


def _files(folder: pathlib.Path, count: int) -> Sequence[str]:
    """The files that the tasks look at; they hold what is asked for."""
    paths = [folder / f"file{n}" for n in range(count)]
    for path in paths:
        path.write_text(_TEXT)
        path.chmod(0o644)
    return [str(p) for p in paths]


def _pairun(folder: pathlib.Path, work: Work, count: int) -> Callable[[], object]:
    paths = _files(folder, count)
    tasks = tuple(
        Task(id=f"t{n}", name=f"Task {n}", module="cmd", args={"argv": ["/bin/true"]})
        if work.changes
        else Task(id=f"t{n}", name=f"Task {n}", module="file", args={"path": p, "content": _TEXT})
        for n, p in enumerate(paths)
    )
    fill(folder, tasks)
    expected = {"changed" if work.changes else "ok"}

    def run() -> None:
        outcomes = {r["outcome"] for r in run_tasks(folder)["results"].values()}
        if outcomes != expected:
            raise RuntimeError(f"the tasks ended in {outcomes}")

    return run


def _ansible(folder: pathlib.Path, work: Work, count: int) -> Callable[[], object]:
    tasks: list[Mapping[str, Any]] = [
        {"name": f"Task {n}", "ansible.builtin.command": {"argv": ["/bin/true"]}}
        if work.changes
        else {"name": f"Task {n}", "ansible.builtin.copy": {"dest": path, "content": _TEXT}}
        for n, path in enumerate(_files(folder, count))
    ]
    playbook = folder / "play.json"
    playbook.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks}]))
    argv = [
        program("ansible-playbook"), "-i", "localhost,", "-c", "local",
        "-e", f"ansible_python_interpreter={program('python')}", str(playbook),
    ]  # fmt: skip
    said = f"ok={count} ", f"changed={count if work.changes else 0} "
    return lambda: _peer(argv, folder, said)


def _pyinfra(folder: pathlib.Path, work: Work, count: int) -> Callable[[], object]:
    paths = _files(folder, count)
    lines = ["from io import StringIO", "from pyinfra.operations import files, server"]
    for n, path in enumerate(paths):
        what = (
            'server.shell(commands=["/bin/true"]'
            if work.changes
            else f"files.put(src=StringIO({_TEXT!r}), dest={path!r}"
        )
        lines.append(f"{what}, name='Task {n}')")
    (folder / "deploy.py").write_text("\n".join(lines) + "\n")
    argv = [program("pyinfra"), "-y", "@local", "deploy.py"]
    said = "] Success" if work.changes else "] No changes"
    return lambda: _peer(argv, folder, (said,), count)


def _peer(argv: Sequence[str], folder: pathlib.Path, said: Sequence[str], times: int = 1) -> None:
    """Run a peer; it must say, so many times, that it did what is measured."""
    env = {
        "PATH": f"{os.path.dirname(argv[0])}:{os.environ.get('PATH', os.defpath)}",
        "HOME": str(folder), "LC_ALL": "C.UTF-8", "NO_COLOR": "1",
        "ANSIBLE_PIPELINING": "1", "ANSIBLE_NOCOLOR": "1",
    }  # fmt: skip
    done = subprocess.run(
        argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    output = done.stdout + done.stderr
    if done.returncode or any(output.count(text) != times for text in said):
        raise RuntimeError(f"{' '.join(argv)}: {done.returncode}\n{output[-2000:]}")


# --- the virtual environment of the peers -----------------------------------------------------------

LOCK = ROOT / "requirements-bench.lock"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "pairun"
"""Where the environment is kept between runs and checkouts."""

_ASK = """
from importlib.metadata import version
print(version("ansible-core"), version("pyinfra"))
"""


def program(name: str) -> str:
    """The path of a program of the environment."""
    return str(_folder() / "bin" / name)


@functools.cache
def _folder() -> pathlib.Path:
    """The environment's folder: another one for each lock and each Python."""
    made_from = f"{sys.version} {sys.base_prefix}".encode() + LOCK.read_bytes()
    return CACHE / f"bench-peers-{hashlib.sha256(made_from).hexdigest()[:16]}"


def prepare_peers() -> tuple[str, str]:
    """Make the virtual environment of the peers unless it exists.

    Returns:
        The versions of ansible-core and pyinfra.

    Raises:
        NotMeasured: the peers cannot be installed.
    """
    if not _complete().exists():
        _make()
        _complete().touch()
    ansible, pyinfra = _run(program("python"), "-c", _ASK).split()
    return ansible, pyinfra


def _complete() -> pathlib.Path:
    """A file that says that everything is installed."""
    return _folder() / "complete"


def _make() -> None:
    print(f"installing the peers into {_folder()}", file=sys.stderr, flush=True)
    shutil.rmtree(_folder(), ignore_errors=True)
    _run(sys.executable, "-m", "venv", str(_folder()))
    # A mirror's warnings are no news: what counts is the hashes.
    quiet = ["--quiet", "--disable-pip-version-check", "--no-input", "--retries", "1"]
    hashed = ["--require-hashes", "--only-binary", ":all:", "-r", str(LOCK)]
    _run(program("python"), "-m", "pip", "install", *quiet, *hashed)


def _run(*argv: str) -> str:
    # Only what is locked: no other index's packages, no other environment's.
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    try:
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    except OSError as e:
        raise NotMeasured(f"the peers cannot be started: {e}") from e
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise NotMeasured(f"the peers cannot be installed: {last}")
    return done.stdout

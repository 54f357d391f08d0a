"""What the review of a large job costs, as each of its dimensions doubles.

A job file is foreign: its review must take time in proportion to it, whatever the file repeats.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from benchmarks.measure import TIMES, Row, fixed, in_turns, samples
from pairun.playbook.content import open_content
from pairun.playbook.effective import Layers
from pairun.review.jobreview import review_data
from pairun.secrets.vault import Vault

EXPONENT = 1.2
"""The time may grow with this power of the size; 1 is in proportion."""

LARGE_MS = 2000.0
LARGE_KB = 209

_PLUGINS = "com.microsoft.pai.runtimeplugin"
_Job = dict[str, Any]


def _role(**more: Any) -> _Job:
    resources = {"cpu": 1, "memoryMB": 1, "gpu": 0}
    return {"dockerImage": "i", "commands": ["a"], "resourcePerInstance": resources, **more}


def _job(**more: Any) -> _Job:
    image = {"name": "i", "type": "dockerimage", "uri": "ubuntu:22.04"}
    return {"protocolVersion": 2, "name": "j", "type": "job", "prerequisites": [image],
            "taskRoles": {"r": _role()}, **more}  # fmt: skip


def _commands(n: int) -> _Job:
    return _job(taskRoles={"r": _role(commands=[f"echo number {i}" for i in range(n)])})


def _unset(n: int) -> _Job:
    return _job(taskRoles={"r": _role(commands=[f"echo $v{i}" for i in range(n)])})


def _roles(n: int) -> _Job:
    return _job(taskRoles={f"r{i}": _role() for i in range(n)})


def _plugins(n: int) -> _Job:
    items = [{"plugin": "cmd", "parameters": {"preCommands": [f"echo {i}"]}} for i in range(n)]
    return _job(extras={_PLUGINS: items})


def _prerequisites(n: int) -> _Job:
    """A chain: each requires the next, and the role lists them all."""
    job = _job(taskRoles={"r": _role(prerequisites=[f"p{i}" for i in range(n)])})
    callback = {"event": "taskStarts", "commands": ["echo <% this.uri %>"]}
    job["prerequisites"] += [
        {"name": f"p{i}", "type": "script", "uri": "x", "callbacks": [callback],
         "require": [f"p{i + 1}"] if i + 1 < n else []} for i in range(n)
    ]  # fmt: skip
    return job


def _missing(n: int) -> _Job:
    job = _job(taskRoles={"r": _role(prerequisites=[f"q{i}" for i in range(n)])})
    job["prerequisites"] += [{"name": f"p{i}", "type": "script", "uri": "x"} for i in range(n)]
    return job


def _ports(n: int) -> _Job:
    resources = {"cpu": 1, "memoryMB": 1, "gpu": 0, "ports": {f"p{i}": 1 for i in range(n)}}
    return _job(taskRoles={"r": _role(resourcePerInstance=resources)})


def _task(number: int, **place: Any) -> _Job:
    command = {"argv": ["true", str(number)]}
    return {**place, "id": f"t{number}", "name": "T", "cmd": command, "failure_policy": "ignore"}


def _patches(n: int) -> _Job:
    first = [_task(0, append=True)]
    tasks = [_task(i, after=f"t{i - 1}") for i in range(1, n)]
    return _job(extras={"pairun": {"runtime": first + tasks}})


def _parameters(n: int) -> _Job:
    commands = [f"echo <% $parameters.p{i} %>" for i in range(n)]
    values = {f"p{i}": f"v{i}" for i in range(n)}
    return _job(parameters=values, taskRoles={"r": _role(commands=commands)})


def _secrets(n: int) -> _Job:
    commands = [f"echo <% $secrets.s{i} %>" for i in range(n)]
    values = {f"s{i}": f"{i:06d}-secret" for i in range(n)}
    return _job(secrets=values, taskRoles={"r": _role(commands=commands)})


def _undefined(n: int) -> _Job:
    commands = [f"echo <% $parameters.q{i} %>" for i in range(n)]
    values = {f"p{i}": f"v{i}" for i in range(n)}
    return _job(parameters=values, taskRoles={"r": _role(commands=commands)})


DIMENSIONS: Mapping[str, Callable[[int], _Job]] = {
    "commands": _commands,
    "unset variables": _unset,
    "roles": _roles,
    "plugins": _plugins,
    "prerequisites": _prerequisites,
    "missing prerequisites": _missing,
    "ports": _ports,
    "patches": _patches,
    "parameters": _parameters,
    "secrets": _secrets,
    "undefined tags": _undefined,
}
"""A job with a number of each."""


def text_of(job: _Job) -> bytes:
    """A job file with one line for each command and each entry of a mapping."""
    return json.dumps(job, indent=1).encode()


def review(text: bytes, layers: Layers) -> None:
    """Review a job file."""
    review_data(text, "job.yaml", layers, "user", [], vault=Vault())


def rows() -> Iterator[Row]:
    """The growth of each dimension, and one large job."""
    layers = Layers(open_content([], os.environ))
    for name, make in DIMENSIONS.items():
        yield _growth(name, make, layers)
    lines = ["echo number 123456"] * (LARGE_KB * 1000 // 24)
    text = text_of(_job(taskRoles={"r": _role(commands=lines)}))
    least = samples([_cpu_ms(text, layers) for _ in range(TIMES)])
    what = f"CPU of the review of a job file of {len(text) // 1000} kB"
    yield Row(what, "ms", least, LARGE_MS, "the goal", fixed(LARGE_MS))


def _growth(name: str, make: Callable[[int], _Job], layers: Layers) -> Row:
    """Twice the size where the review is long enough to be measured."""
    n = 100
    while _cpu_ms(text_of(make(n)), layers) < 150.0:
        n *= 2
    half, whole = text_of(make(n)), text_of(make(2 * n))
    one, two = in_turns(TIMES, lambda: _cpu_ms(half, layers), lambda: _cpu_ms(whole, layers))
    exponent = math.log2(two.least / one.least)
    return Row(
        f"CPU of the review, {2 * n} {name}", "ms", two, 2**EXPONENT * one.least,
        f"{n} {name}", one, f"exponent {exponent:.2f}",
    )  # fmt: skip


def _cpu_ms(text: bytes, layers: Layers) -> float:
    began = time.process_time()
    review(text, layers)
    return (time.process_time() - began) * 1000

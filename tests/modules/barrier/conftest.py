"""A world with a clock that only waiting moves, and an API server that is a function."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from pairun.module import CheckModule, Failure
from pairun.testing import RealWorld

if TYPE_CHECKING:
    from pathlib import Path

    from tests.modules.conftest import Harness


METADATA = "PartialObjectMetadata"


Object = dict[str, Any]


class World(RealWorld):
    """This machine with a clock that only waiting moves, and an API server that is a function.

    Attributes:
        asked: time, path and form of every question.
        slept: every wait in seconds.
        time_s: the clock.
    """

    def __init__(
        self, folder: Path, env: Mapping[str, str], answer: Callable[[World, str], Any]
    ) -> None:
        self.asked: list[tuple[float, str, str]] = []
        self.slept: list[float] = []
        self._answer = answer
        self.time_s = 1e9
        answers = {
            "now": lambda: self.time_s,
            "sleep": self.sleep,
            "gather": self._gather,
            "ask_api": self._ask_api,
            "connects": self._connects,
        }
        super().__init__(folder, env=env, answers=answers)

    def sleep(self, seconds: float) -> None:
        """Move the clock."""
        self.slept.append(seconds)
        self.time_s += seconds

    def _ask_api(
        self,
        path: str,
        *,
        timeout_s: float,
        query: Mapping[str, str] | None = None,
        accept: str | None = None,
        max_bytes: int = 1,
    ) -> bytes | None:
        assert timeout_s > 0
        assert max_bytes > 0
        form = METADATA if accept else "".join(f"{k}={v};" for k, v in (query or {}).items())
        self.asked.append((self.time_s - 1e9, path, form))
        answer = self._answer(self, path)
        return None if answer is None else json.dumps(answer).encode()

    def _gather(self, roles: Mapping[str, int], log: Callable[[str], None]) -> Any:
        del roles, log
        return NotImplemented

    def _connects(self, host: str, port: int, **_: Any) -> bool:
        self.asked.append((self.time_s - 1e9, f"{host}:{port}", "tcp"))
        return False


ENV = {
    "FC_FRAMEWORK_NAMESPACE": "ns",
    "FC_FRAMEWORK_NAME": "fw",
    "FC_FRAMEWORK_ATTEMPT_ID": "3",
    "FC_TASKROLE_NAME": "w",
    "FC_TASK_INDEX": "0",
    "FC_POD_UID": "uid-0",
}


def framework(size: int, there: int, version: str = "1", **task: Any) -> Object:
    """A Framework of one role, of whose tasks the first ones have addresses."""
    tasks = [
        {"index": i, "attemptStatus": {"podUID": f"uid-{i}", "podHostIP": "h",
         "podIP": f"10.0.0.{i}" if i < there else None, **task}}
        for i in range(size)
    ]  # fmt: skip
    statuses = [{"name": "w", "taskStatuses": tasks}]
    return {
        "metadata": {"name": "fw", "uid": "own", "resourceVersion": version},
        "spec": {"taskRoles": [{"name": "w", "taskNumber": size}]},
        "status": {"attemptStatus": {"id": 3, "taskRoleStatuses": statuses}},
    }


@pytest.fixture
def world(harness: Harness) -> Callable[..., World]:
    """Makes worlds on the test's volume."""

    def make(answer: Callable[[World, str], Any], **env: str) -> World:
        return World(harness.tmp, {**ENV, **env}, answer)

    return make


def fails(harness: Harness, ctx: World, **args: Any) -> Failure:
    """Let the barrier fail."""
    module = harness.make("barrier", {"backend": "framework", **args})
    assert isinstance(module, CheckModule)
    with pytest.raises(Failure) as e:
        module.check(ctx.ctx)
    return e.value


def passes(harness: Harness, ctx: World, **args: Any) -> Object:
    """Let the barrier pass, and return what it recorded."""
    module = harness.make("barrier", {"backend": "framework", **args})
    assert isinstance(module, CheckModule)
    module.check(ctx.ctx)
    found: Object = json.loads((harness.pai_dir / "framework.json").read_text())
    return found

"""The barrier after a restart of the container."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from pairun.module import CheckModule, Failure, Result

if TYPE_CHECKING:
    from tests.modules.conftest import Harness
from tests.modules.barrier.conftest import Object, World, framework

RUNS: Object = {"running": {}}
CRASHED: Object = {"waiting": {"reason": "CrashLoopBackOff"}}
DONE: Object = {"terminated": {"exitCode": 0}}
FAILED: Object = {"terminated": {"exitCode": 3}}


def pod(number: int, state: Object, ip: str | None, phase: str = "Running") -> Object:
    """A Pod with a main container, and a sidecar that always crashes."""
    labels = {"pairun/role": "w", "pairun/index": str(number)}
    mount = {"name": "p", "mountPath": "/usr/local/pai"}
    states = [{"name": "side", "state": CRASHED}, {"name": "main", "state": state}]
    return {
        "metadata": {"name": f"p{number}", "uid": f"uid-{number}", "labels": labels},
        "spec": {
            "nodeName": "n",
            "containers": [{"name": "side"}, {"name": "main", "volumeMounts": [mount]}],
        },
        "status": {"podIP": ip, "phase": phase, "containerStatuses": states},
    }


@pytest.fixture
def env(harness: Harness) -> dict[str, str]:
    """The variables of the task of a gang of two, whose container has restarted once."""
    made = framework(2, 0)
    del made["status"]
    file = harness.tmp / "framework.json"
    file.write_text(json.dumps(made))
    instances = [{"index": n, "host_ip": f"10.0.0.{n + 1}", "pod_uid": "x"} for n in range(2)]
    for folder in ("runtime.d", "run"):
        (harness.pai_dir / folder).mkdir()
    cluster = {"roles": [{"fc_name": "w", "name": "w", "instances": instances}]}
    (harness.pai_dir / "runtime.d" / "cluster.json").write_text(json.dumps(cluster))
    return {
        "PAIRUN_FRAMEWORK_FILE": str(file), "PAIRUN_RESTARTS": "1",
        "PAI_HOST_IP_w_1": "10.0.0.2", "PAI_TASK_ROLE_w_HOST_LIST": "10.0.0.1:80,10.0.0.2:80",
        "OTHER": "10.0.0.2", "PAI_X": "10.0.0.21",
    }  # fmt: skip


def meet(harness: Harness, ctx: World, **args: Any) -> Result:
    """Run the task."""
    module = harness.make("barrier", {"backend": "pods", "ready": "running", **args})
    assert isinstance(module, CheckModule)
    result = module.check(ctx.ctx)
    assert isinstance(result, Result)
    return result


@pytest.mark.parametrize(
    "other",
    [
        pod(1, RUNS, "10.0.0.2"),
        pod(1, DONE, "10.0.0.2"),
        pod(1, DONE, None),
        pod(1, FAILED, None, phase="Succeeded"),
    ],
)
def test_one_look_is_enough(
    harness: Harness, world: Callable[..., World], env: dict[str, str], other: Object
) -> None:
    """A container that runs counts, restarted or not, and one that has succeeded."""
    ctx = world(lambda *_: {"items": [pod(0, CRASHED, "10.0.0.1"), other]}, **env)
    result = meet(harness, ctx)
    assert (result.message, result.environment) == ("all 2 instances run", {})
    assert len(ctx.asked) == 1
    assert not (harness.pai_dir / "run" / "cluster.json").exists()


def test_it_waits_for_a_task_that_restarts_too(
    harness: Harness, world: Callable[..., World], env: dict[str, str]
) -> None:
    """Tasks that fail together start together."""

    def listed(ctx: World, _: str) -> Object:
        state = {1: FAILED, 2: CRASHED}.get(len(ctx.asked), RUNS)
        return {"items": [pod(0, CRASHED, "10.0.0.1"), pod(1, state, "10.0.0.2")]}

    ctx = world(listed, **env)
    meet(harness, ctx)
    assert len(ctx.asked) == 3


def test_an_instance_that_has_moved(
    harness: Harness, world: Callable[..., World], env: dict[str, str]
) -> None:
    """Later tasks and the command get the new address; other variables stay."""
    ctx = world(lambda *_: {"items": [pod(0, RUNS, "10.0.0.1"), pod(1, RUNS, "10.0.0.9")]}, **env)
    result = meet(harness, ctx)
    assert result.message == "all 2 instances run; 1 have new addresses"
    assert result.environment == {
        "PAI_HOST_IP_w_1": "10.0.0.9", "PAI_TASK_ROLE_w_HOST_LIST": "10.0.0.1:80,10.0.0.9:80",
    }  # fmt: skip
    made = json.loads((harness.pai_dir / "run" / "cluster.json").read_text())
    hosts = [i["host_ip"] for i in made["roles"][0]["instances"]]
    assert hosts == ["10.0.0.1", "10.0.0.9"]

    # It moves back: nothing of the last restart is left.
    ctx = world(lambda *_: {"items": [pod(0, RUNS, "10.0.0.1"), pod(1, RUNS, "10.0.0.2")]}, **env)
    assert meet(harness, ctx).environment == {}
    assert not (harness.pai_dir / "run" / "cluster.json").exists()


@pytest.mark.parametrize(
    ("others", "why"),
    [
        ([], "w-1 (no Pod yet)"),
        ([pod(1, CRASHED, "10.0.0.2")], "w-1 (main: CrashLoopBackOff)"),
        ([pod(1, FAILED, "10.0.0.2")], "w-1 (main failed with 3)"),
    ],
)
def test_the_wait_is_bounded(
    harness: Harness,
    world: Callable[..., World],
    env: dict[str, str],
    others: list[Object],
    why: str,
) -> None:
    """It ends at the timeout, and says what each missing task does."""
    ctx = world(lambda *_: {"items": [pod(0, RUNS, "10.0.0.1"), *others]}, **env)
    with pytest.raises(Failure) as e:
        meet(harness, ctx, timeout="1m")
    assert e.value.kind == "timeout"
    assert f"1 of 2 instances run; missing: {why}" in e.value.message
    assert 60 <= sum(ctx.slept) < 64


def test_the_first_start(
    harness: Harness, world: Callable[..., World], env: dict[str, str]
) -> None:
    """It asks nobody: the init container has waited."""
    ctx = world(lambda *_: pytest.fail("it asks"), **{**env, "PAIRUN_RESTARTS": ""})
    assert "first start" in str(meet(harness, ctx).message)

"""The backend that reads the Framework."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.effort import cases

if TYPE_CHECKING:
    from tests.modules.conftest import Harness
from tests.modules.barrier.conftest import ENV, METADATA, Object, World, fails, framework, passes


def test_the_whole_is_read_only_when_it_changed(
    harness: Harness, world: Callable[..., World]
) -> None:
    """Between changes the metadata is enough."""

    def answer(ctx: World, _: str) -> Object:
        late = len(ctx.asked) > 4
        return framework(2, 2 if late else 1, "2" if late else "1")

    ctx = world(answer)
    passes(harness, ctx)
    assert [form for _, _, form in ctx.asked] == ["", *[METADATA] * 4, "resourceVersion=2;"]


def _other_pod(found: Object) -> None:
    found["status"]["attemptStatus"]["taskRoleStatuses"][0]["taskStatuses"][0]["attemptStatus"][
        "podUID"
    ] = "other"


def _other_attempt(found: Object) -> None:
    found["status"]["attemptStatus"]["id"] = 2


def _going(found: Object) -> None:
    tasks = found["status"]["attemptStatus"]["taskRoleStatuses"][0]["taskStatuses"]
    tasks[1]["deletionPending"] = True


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            _other_pod,
            "2 of 2 instances have addresses, but they refer to another Pod instead of this one",
        ),
        (_other_attempt, "attempt 2, and this Pod to 3"),
        (_going, "1 of 2 instances have addresses; missing: w-1"),
        (lambda f: f.update(status=None), "0 of 2 instances"),
        (lambda f: f["status"].update(attemptStatus=None), "0 of 2 instances"),
        (lambda f: f["status"]["attemptStatus"].update(taskRoleStatuses=None), "0 of 2 instances"),
        (
            lambda f: f["status"]["attemptStatus"].update(
                taskRoleStatuses=None, taskRoleStatusesCompressed="####"
            ),
            "end too early",
        ),
    ],
)
def test_a_status_that_does_not_count(
    harness: Harness, world: Callable[..., World], change: Callable[[Object], None], says: str
) -> None:
    """However complete it looks, the time runs out, and the last word says why."""
    found = framework(2, 2)
    change(found)
    ctx = world(lambda _, path: found if "frameworks" in path else None)
    failure = fails(harness, ctx, timeout="3s")
    assert says in failure.message
    assert not (harness.pai_dir / "framework.json").exists()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda f: f["metadata"].update(deletionTimestamp="now"), "is being deleted"),
        (lambda f: f["metadata"].update(uid="other"), "is newer than"),
        (lambda f: f.update(spec=None), "is not a Framework"),
        (lambda f: f["spec"]["taskRoles"][0].update(taskNumber=0), "does not belong to its job"),
        (lambda f: f["spec"]["taskRoles"][0].update(taskNumber=None), "is not a Framework"),
    ],
)
def test_a_framework_that_will_not_do(
    harness: Harness, world: Callable[..., World], change: Callable[[Object], None], says: str
) -> None:
    """Nothing of this heals by waiting."""
    found = framework(2, 2)
    change(found)
    failure = fails(harness, world(lambda *_: found, FC_FRAMEWORK_UID="own"), timeout="3s")
    assert (failure.kind, says in failure.message or failure.message) == ("permanent", True)


@pytest.mark.parametrize(("env", "expected"), [({}, "h"), ({"PAIRUN_HOST_IP": "10.0.0.0"}, "10.0.0.1")])  # fmt: skip
def test_pods_with_a_network_of_their_own(
    harness: Harness, world: Callable[..., World], env: dict[str, str], expected: str
) -> None:
    """Where the engine tells a Pod its address, the others are reached at theirs, too."""
    found = passes(harness, world(lambda *_: framework(2, 2), **env))
    (role,) = found["status"]["attemptStatus"]["taskRoleStatuses"]
    assert role["taskStatuses"][1]["attemptStatus"]["podHostIP"] == expected


def test_alone_a_host_address_of_the_engine_is_enough(
    harness: Harness, world: Callable[..., World]
) -> None:
    """Where the engine says it, the status need not."""
    found = framework(2, 0, podHostIP=None)
    failure = fails(harness, world(lambda *_: found), gang=False, timeout="2s")
    assert "0 of 1 instances have addresses; missing: w-0" in failure.message
    passes(harness, world(lambda *_: found, PAIRUN_HOST_IP="10.0.0.1"), gang=False)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(["name", "taskStatuses", "index", "attemptStatus", "podIP"]), inner
        )
    ),
)


@given(
    st.binary(max_size=60)
    | st.binary(max_size=60).map(gzip.compress)
    | JSON.map(lambda value: gzip.compress(json.dumps(value).encode()))
)
@example(gzip.compress(b"4"))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=cases(50))
def test_no_compressed_status_is_too_strange(harness: Harness, data: bytes) -> None:
    """Whatever it holds, the barrier waits and then says that it cannot be used."""
    found = framework(2, 2)
    attempt = found["status"]["attemptStatus"]
    attempt["taskRoleStatuses"] = None
    attempt["taskRoleStatusesCompressed"] = base64.b64encode(data).decode()
    ctx = World(harness.pai_dir, ENV, lambda _, path: found if "frameworks" in path else None)
    assert fails(harness, ctx, timeout="1s").kind in ("transient", "timeout")


def _waiting(reason: str, message: str | None = None) -> Object:
    state = {"waiting": {"reason": reason, "message": message}}
    return {"containerStatuses": [{"name": "app", "state": state}]}


@pytest.mark.parametrize(
    ("pod", "says"),
    [
        (None, "its Pod is gone"),
        ({"metadata": {"deletionTimestamp": "x"}}, "its Pod is being deleted"),
        (
            {"status": {"conditions": [{"type": "PodScheduled", "status": "False",
                                        "message": "no\nroom"}]}},
            "unscheduled: no room",
        ),
        ({"status": _waiting("ContainerCreating")}, "being created: image, volumes, network"),
        ({"status": _waiting("ErrImagePull", "denied")}, "app: ErrImagePull, denied"),
        ({"status": _waiting("CreateContainerConfigError")}, "app: CreateContainerConfigError"),
        ({"status": {"phase": "Failed", "reason": "Evicted"}}, "failed: Evicted"),
        ({"spec": {"nodeName": "n"}, "status": None}, "it has no address yet"),
        ({"status": {"podIP": "10.0.0.1"}, "spec": {"nodeName": "n"}}, "received its address a moment ago"),
    ],
)  # fmt: skip
def test_why_a_task_is_missing(
    harness: Harness, world: Callable[..., World], pod: Object | None, says: str
) -> None:
    """What its Pod says, in a few words."""
    found = framework(2, 1)
    ctx = world(lambda _, path: found if "frameworks" in path else pod)
    failure = fails(harness, ctx, timeout="1s")
    assert failure.message.startswith("after 1s 1 of 2 instances have addresses; missing: w-1 (")
    assert says in failure.message

"""The module barrier in a cluster: how often it asks, what it asks for, and when it gives up."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pairun.host.context import HostContext
from pairun.module import CheckModule, Failure, Permanent, Transient
from tests.effort import cases

if TYPE_CHECKING:
    from pathlib import Path

    from tests.modules.conftest import Harness

METADATA = "PartialObjectMetadata"
Object = dict[str, Any]


class World(HostContext):
    """This machine with a clock that only waiting moves, and an API server that is a function.

    Attributes:
        asked: time, path and form of every question.
        slept: every wait in seconds.
        lines: what was said.
    """

    def __init__(
        self, folder: Path, env: Mapping[str, str], answer: Callable[[World, str], Any]
    ) -> None:
        self.asked: list[tuple[float, str, str]] = []
        self.slept: list[float] = []
        self.lines: list[str] = []
        super().__init__(env, str(folder), emit_log=self.lines.append)
        self._answer = answer
        self._time = 1e9

    def now(self) -> float:
        return self._time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._time += seconds

    def ask_api(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        accept: str | None = None,
        timeout_s: float = 10.0,
        max_bytes: int = 1024 * 1024,
    ) -> bytes | None:
        assert timeout_s > 0
        assert max_bytes > 0
        form = METADATA if accept else "".join(f"{k}={v};" for k, v in (query or {}).items())
        self.asked.append((self._time - 1e9, path, form))
        found = self._answer(self, path)
        return None if found is None else json.dumps(found).encode()

    def connects(self, host: str, port: int, *, timeout_s: float = 1.0) -> bool:
        self.asked.append((self._time - 1e9, f"{host}:{port}", "tcp"))
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
        return World(harness.pai_dir, {**ENV, **env}, answer)

    return make


def fails(harness: Harness, ctx: World, **args: Any) -> Failure:
    """Let the barrier fail."""
    module = harness.make("barrier", {"backend": "framework", **args})
    assert isinstance(module, CheckModule)
    with pytest.raises(Failure) as e:
        module.check(ctx)
    return e.value


def passes(harness: Harness, ctx: World, **args: Any) -> Object:
    """Let the barrier pass, and return what it recorded."""
    module = harness.make("barrier", {"backend": "framework", **args})
    assert isinstance(module, CheckModule)
    module.check(ctx)
    found: Object = json.loads((harness.pai_dir / "framework.json").read_text())
    return found


# --- how often -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "least", "most"), [(2, 0.75, 1.25), (600, 3, 5), (9000, 10, 10)])
def test_larger_gangs_are_asked_for_less_often(
    harness: Harness, world: Callable[..., World], size: int, least: float, most: float
) -> None:
    """From once a second to once in ten, never quite regularly."""
    ctx = world(lambda _, path: framework(size, 1) if "frameworks" in path else None)
    assert fails(harness, ctx, timeout="100s").kind == "timeout"
    pauses = ctx.slept[:-1]
    assert least <= min(pauses) <= max(pauses) <= most
    assert len(set(pauses)) > 1 or size == 9000


def test_tasks_do_not_ask_all_at_once(harness: Harness, world: Callable[..., World]) -> None:
    """The times of two Pods differ."""
    said = []
    for uid in ("uid-0", "a", "b"):
        ctx = world(lambda _, path: framework(2, 1) if "frame" in path else None, FC_POD_UID=uid)
        fails(harness, ctx, timeout="10s")
        said.append(tuple(ctx.slept))
    assert len(set(said)) == 3


def test_what_is_set_counts_as_it_is(harness: Harness, world: Callable[..., World]) -> None:
    """The variables of FrameworkController's barrier replace the arguments."""
    env = {"BARRIER_CHECK_INTERVAL_SEC": "7", "BARRIER_CHECK_TIMEOUT_SEC": "60"}
    ctx = world(lambda _, path: framework(2, 1) if "frameworks" in path else None, **env)
    failure = fails(harness, ctx, timeout="1s")
    assert "after 1m 1 of 2" in failure.message
    assert ctx.slept == [7.0] * 8 + [4.0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("BARRIER_CHECK_INTERVAL_SEC", "4"),
        ("BARRIER_CHECK_INTERVAL_SEC", "5.0"),
        ("BARRIER_CHECK_TIMEOUT_SEC", "59"),
        ("BARRIER_CHECK_TIMEOUT_SEC", "1201"),
        ("BARRIER_CHECK_TIMEOUT_SEC", "-60"),
        ("BARRIER_CHECK_TIMEOUT_SEC", "٦٠٠"),
        ("BARRIER_CHECK_TIMEOUT_SEC", "9" * 5000),
    ],
)
def test_what_cannot_be_set(
    harness: Harness, world: Callable[..., World], name: str, text: str
) -> None:
    """Out of range or no number is permanent, before anybody is asked."""
    ctx = world(lambda *_: framework(2, 2), **{name: text})
    failure = fails(harness, ctx)
    assert failure.kind == "permanent"
    assert failure.message.startswith(f"{name} is '{text[:40]}'")
    assert ctx.asked == []


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


# --- trouble on the way ----------------------------------------------------------------------------


def test_trouble_is_waited_out(harness: Harness, world: Callable[..., World]) -> None:
    """Each time longer, and as long as the server asks; the last word is the gang's."""

    def answer(ctx: World, _: str) -> Object:
        if len(ctx.asked) <= 3:
            raise Transient("it says 503", retry_after_s=30 if len(ctx.asked) == 3 else None)
        return framework(2, 2)

    ctx = world(answer)
    passes(harness, ctx)
    first, second, third = ctx.slept
    assert 0.75 <= first <= 1.25
    assert 1.5 <= second <= 2.5
    assert third >= 22
    assert ctx.lines == ["it says 503; trying again", "2 of 2 tasks have addresses"]


@pytest.mark.parametrize("answers", [0, 1])
def test_a_server_that_stays_away(
    harness: Harness, world: Callable[..., World], answers: int
) -> None:
    """To have no answer at the end is no fault of the gang, whatever was known before."""

    def answer(ctx: World, _: str) -> Object:
        if len(ctx.asked) > answers:
            raise Transient("refused")
        return framework(2, 1)

    failure = fails(harness, world(answer), timeout="1m")
    assert failure.kind == "transient"
    assert failure.message == "after 1m there is no answer that counts; the last: refused"


def test_a_right_that_is_missing_ends_it(harness: Harness, world: Callable[..., World]) -> None:
    """What will not heal is not waited for."""

    def answer(ctx: World, _: str) -> Object:
        raise Permanent("may not", hint="grant it")

    ctx = world(answer)
    assert fails(harness, ctx).hint == "grant it"
    assert (len(ctx.asked), ctx.slept) == (1, [])


# --- whose status, and which tasks ------------------------------------------------------------------


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
        (_other_pod, "2 of 2 tasks have addresses, but in place of this Pod they have another one"),
        (_other_attempt, "attempt 2, and this Pod belongs to 3"),
        (_going, "1 of 2 tasks have addresses; missing: w-1"),
        (lambda f: f.update(status=None), "0 of 2 tasks"),
        (lambda f: f["status"].update(attemptStatus=None), "0 of 2 tasks"),
        (lambda f: f["status"]["attemptStatus"].update(taskRoleStatuses=None), "0 of 2 tasks"),
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
        (lambda f: f["metadata"].update(uid="other"), "a later one of that name"),
        (lambda f: f.update(spec=None), "is no Framework"),
        (lambda f: f["spec"]["taskRoles"][0].update(taskNumber=0), "not part of its own job"),
        (lambda f: f["spec"]["taskRoles"][0].update(taskNumber=None), "is no Framework"),
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
    assert "0 of 1 tasks have addresses; missing: w-0" in failure.message
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


# --- who is missing, and why -----------------------------------------------------------------------


@pytest.mark.parametrize(("size", "asked"), [(30, 10), (3000, 3)])
def test_few_are_asked_about(
    harness: Harness, world: Callable[..., World], size: int, asked: int
) -> None:
    """In a large gang everybody's last questions together would be too many."""
    found = framework(size, 1)
    pod = {"metadata": {"name": "x"}, "status": {"phase": "Pending"}}
    ctx = world(lambda _, path: found if "frameworks" in path else pod)
    failure = fails(harness, ctx, timeout="1s")
    assert failure.message.count("(not scheduled yet)") == asked
    assert failure.message.endswith(f"and {size - 11} more")
    pods = [path for _, path, _ in ctx.asked if "/pods/" in path]
    assert pods == [f"/api/v1/namespaces/ns/pods/fw-w-{i + 1}" for i in range(asked)]


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
        ({"status": _waiting("ContainerCreating")}, "being made: image, volumes, network"),
        ({"status": _waiting("ErrImagePull", "denied")}, "app: ErrImagePull, denied"),
        ({"status": _waiting("CreateContainerConfigError")}, "app: CreateContainerConfigError"),
        ({"status": {"phase": "Failed", "reason": "Evicted"}}, "failed: Evicted"),
        ({"spec": {"nodeName": "n"}, "status": None}, "it has no address yet"),
        ({"status": {"podIP": "10.0.0.1"}, "spec": {"nodeName": "n"}}, "only just got its address"),
    ],
)  # fmt: skip
def test_why_a_task_is_missing(
    harness: Harness, world: Callable[..., World], pod: Object | None, says: str
) -> None:
    """What its Pod says, in a few words."""
    found = framework(2, 1)
    ctx = world(lambda _, path: found if "frameworks" in path else pod)
    failure = fails(harness, ctx, timeout="1s")
    assert failure.message.startswith("after 1s 1 of 2 tasks have addresses; missing: w-1 (")
    assert says in failure.message


# --- Pods -------------------------------------------------------------------------------------------


@pytest.fixture
def pods_env(harness: Harness) -> dict[str, str]:
    """The variables of a Pod that pairun made, of a gang of two."""
    file = harness.tmp / "framework.json"
    made = framework(2, 0)
    del made["status"]
    annotations = {
        "rest-server/port-scheduling-spec": json.dumps(
            {"schedulePortStart": 20000, "schedulePortEnd": 40000, "ports": {"tcp": {"count": 1}}}
        )
    }
    made["spec"]["taskRoles"][0]["task"] = {"pod": {"metadata": {"annotations": annotations}}}
    file.write_text(json.dumps(made))
    return {"PAIRUN_FRAMEWORK_FILE": str(file)}


def pod(index: int, made: str = "2020", index_as: str = "label", **more: Any) -> Object:
    """A Pod with an address."""
    labels, annotations = {"pairun/role": "w"}, {}
    if index_as == "label":
        labels["pairun/index"] = str(index)
    else:
        annotations["batch.kubernetes.io/job-completion-index"] = str(index)
    meta = {"name": f"p{index}", "uid": f"uid-{index}", "creationTimestamp": made,
            "labels": labels, "annotations": annotations}  # fmt: skip
    return {"metadata": {**meta, **more}, "status": {"podIP": f"10.0.0.{index}"}}


def test_the_pods_of_a_job(
    harness: Harness, world: Callable[..., World], pods_env: dict[str, str]
) -> None:
    """By index of a label or of an Indexed Job; the young one counts, those that go do not."""
    listed = [
        pod(0, index_as="annotation"),
        pod(1, made="2021", uid="young"),
        pod(1, made="2020", uid="old"),
        pod(1, made="2022", uid="going", deletionTimestamp="x"),
        pod(7),
        {"metadata": {"labels": {"pairun/role": "w", "pairun/index": "-1"}}},
        {"metadata": {"labels": None}},
    ]
    ctx = world(lambda *_: {"items": listed}, **pods_env)
    found = passes(harness, ctx, backend="pods")
    (role,) = found["status"]["attemptStatus"]["taskRoleStatuses"]
    assert [t["attemptStatus"]["podUID"] for t in role["taskStatuses"]] == ["uid-0", "young"]
    said = role["taskStatuses"][1]["attemptStatus"]
    assert (said["podIP"], said["podHostIP"], said["podName"]) == ("10.0.0.1", "10.0.0.1", "p1")
    ((_, path, form),) = ctx.asked
    assert path == "/api/v1/namespaces/ns/pods"
    assert form == "labelSelector=pairun/job=fw;resourceVersion=0;"


@pytest.mark.parametrize(
    ("listed", "args", "says"),
    [
        ([pod(0)], {}, "missing: w-1 (no Pod yet)"),
        ([], {"gang": False}, "0 of 1 tasks have addresses; missing: w-0 (no Pod yet)"),
        ([pod(0, uid="other"), pod(1)], {}, "in place of this Pod they have another one"),
        ([pod(0), {**pod(1), "status": {"podIP": "x", "phase": "Failed"}}], {}, "w-1 (failed: "),
        ([pod(0), pod(1)], {"ready": "port", "port": "tcp"}, "w-1 (its port tcp does not answer)"),
        ([pod(0), pod(1)], {"ready": "init"}, "missing: w-1"),
    ],
)
def test_pods_that_are_missing(
    harness: Harness,
    world: Callable[..., World],
    pods_env: dict[str, str],
    listed: list[Object],
    args: Object,
    says: str,
) -> None:
    """Who is missing is told from the last list, without another question."""
    ctx = world(lambda *_: {"items": listed}, **pods_env)
    failure = fails(harness, ctx, backend="pods", timeout="1s", **args)
    assert failure.kind == "timeout"
    assert says in failure.message


def test_a_port_that_the_role_does_not_have(
    harness: Harness, world: Callable[..., World], pods_env: dict[str, str]
) -> None:
    """Is a slip of whoever wrote the playbook."""
    ctx = world(lambda *_: {"items": [pod(0), pod(1)]}, **pods_env)
    failure = fails(harness, ctx, backend="pods", ready="port", port="udp")
    assert (failure.kind, failure.message) == ("permanent", "the role w has no port 'udp' to ask")


def test_arguments_that_do_not_go_together(harness: Harness) -> None:
    """A port to ask needs its label, and only Pods can be asked."""
    (problem,) = harness.problems("barrier", {"backend": "pods", "ready": "port"})
    assert "go together" in problem.message
    (problem,) = harness.problems("barrier", {"backend": "framework", "ready": "init"})
    assert "needs `backend: pods`" in problem.message


def test_a_log_that_cannot_be_kept(harness: Harness, world: Callable[..., World]) -> None:
    """Is said once, and the barrier goes on."""
    (harness.pai_dir / "logs").write_text("a file")
    ctx = world(lambda ctx, _: framework(2, len(ctx.asked), str(len(ctx.asked))))
    passes(harness, ctx)
    assert sum("no barrier.log" in line for line in ctx.lines) == 1

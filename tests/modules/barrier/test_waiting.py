"""How often the barrier asks, and when it gives up."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from pairun.module import Permanent, Transient

if TYPE_CHECKING:
    from tests.modules.conftest import Harness
import itertools
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from pairun.module import Peer
from tests.modules.barrier.conftest import ENV, Object, World, fails, framework, passes

if TYPE_CHECKING:
    from tests.modules.conftest import Harness


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
    assert ctx.log == ["it says 503; retrying", "2 of 2 instances have addresses"]


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
    assert failure.message == "no usable answer after 1m; the last: refused"


def test_a_right_that_is_missing_ends_it(harness: Harness, world: Callable[..., World]) -> None:
    """What will not heal is not waited for."""

    def answer(ctx: World, _: str) -> Object:
        raise Permanent("may not", hint="grant it")

    ctx = world(answer)
    assert fails(harness, ctx).hint == "grant it"
    assert (len(ctx.asked), ctx.slept) == (1, [])


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


Script = Mapping[float, Mapping[str, Any]]


@attrs.define
class Scripted:
    """A gathering that becomes what a script says, seconds after its beginning.

    Attributes:
        world: whose clock counts.
        script: seconds to what changes then.
    """

    world: Planned
    script: Script
    peers: Sequence[Peer] | None = None
    complete: bool = False
    connected: bool = False
    leads: bool = False
    leader_runs: bool = False
    over: str = ""
    ports: tuple[int, int] | None = (20000, 30000)

    def wait(self, seconds: float) -> None:
        """Wait for the next change, or so long."""
        now = self.world.time_s - self.world.began
        due = min((at for at in self.script if now < at <= now + seconds), default=None)
        self.world.sleep(seconds if due is None else due - now)
        for name, value in self.script.get(due if due is not None else -1, {}).items():
            setattr(self, name, value)

    def close(self) -> None:
        """Nothing to do."""


class Planned(World):
    """A world in which the others come as a script has it."""

    began = 1e9
    course: Script = {}  # noqa: RUF012 - replaced, never changed
    roles: Mapping[str, int] = {}

    def _gather(self, roles: Mapping[str, int], log: Callable[[str], None]) -> Scripted:
        del log
        self.roles = roles
        made = Scripted(self, self.course)
        for name, value in self.course.get(0, {}).items():
            setattr(made, name, value)
        return made


def _roles(count: int) -> str:
    return json.dumps({"w": {"count": count, "ports": {"ssh": 1}}})


def _peers(count: int) -> list[Peer]:
    return [
        Peer("w", i, f"uid-{i}", f"10.0.{i >> 8}.{i & 255}", "h", f"p-{i}") for i in range(count)
    ]


@pytest.fixture
def plan(harness: Harness) -> Callable[..., Planned]:
    """Makes a world: a script, and what the API server answers."""

    def make(script: Script, answer: Any, count: int = 3) -> Planned:
        env = {**ENV, "PAIRUN_ROLES": _roles(count)}
        world = Planned(harness.tmp, env, lambda _, path: answer(path))
        world.course = script
        return world

    return make


def _addresses(found: Mapping[str, Any]) -> list[str]:
    tasks = found["status"]["attemptStatus"]["taskRoleStatuses"][0]["taskStatuses"]
    return [t["attemptStatus"]["podIP"] for t in tasks]


def test_once_all_have_told_their_addresses_it_passes(
    harness: Harness, plan: Callable[..., Planned]
) -> None:
    """The Framework is read once, at the end, and has what the tasks said before its controller."""
    world = plan(
        {5: {"connected": True}, 300: {"complete": True, "peers": _peers(3)}},
        lambda path: framework(3, 1),
    )
    found = passes(harness, world)
    assert world.roles == {"w": 3}
    assert _addresses(found) == ["10.0.0.0", "10.0.0.1", "10.0.0.2"]
    assert [round(at) for at, *_ in world.asked] == [90, 180, 270, 300]
    injector = (harness.pai_dir / "injector.sh").read_text()
    assert "FB_W_IPS=10.0.0.0,10.0.0.1,10.0.0.2" in injector


def test_of_a_large_job_the_framework_is_not_read(
    harness: Harness, plan: Callable[..., Planned]
) -> None:
    """`framework.json` is the roster then, with all that ports and variables are worked out from."""
    script = {1: {"connected": True}, 500: {"complete": True, "peers": _peers(9000)}}
    world = plan(script, lambda _: pytest.fail("nobody is asked"), 9000)
    found = passes(harness, world)
    assert world.asked == []
    assert len(_addresses(found)) == 9000
    (role,) = found["spec"]["taskRoles"]
    assert role["taskNumber"] == 9000
    spec = json.loads(
        role["task"]["pod"]["metadata"]["annotations"]["rest-server/port-scheduling-spec"]
    )
    assert spec == {
        "schedulePortStart": 20000, "schedulePortEnd": 30000, "ports": {"ssh": {"count": 1}},
    }  # fmt: skip


def test_strict_reads_it_whole(harness: Harness, plan: Callable[..., Planned]) -> None:
    """`compat: strict` leaves the whole object, whatever its size."""
    script = {1: {"complete": True, "peers": _peers(900)}}
    world = plan(script, lambda _: {**framework(900, 900), "kind": "Whole"}, 900)
    assert passes(harness, world, compat="strict")["kind"] == "Whole"


def test_without_proof_it_looks_at_once(harness: Harness, plan: Callable[..., Planned]) -> None:
    """What peers without a key say is a reason to look, and no address."""
    world = plan({4: {"connected": True}, 7: {"complete": True}}, lambda _: framework(3, 3))
    passes(harness, world)
    assert [round(at) for at, *_ in world.asked] == [7]


def test_a_hint_counts_however_short_ago_was_the_last_look(
    harness: Harness, plan: Callable[..., Planned]
) -> None:
    """Of a large gang, too, whose looks are far apart."""

    def answer(_: str) -> Any:
        late = world.time_s - 1e9 > 21
        return framework(700, 700 if late else 1, "2" if late else "1")

    world: Planned = plan({22: {"complete": True}}, answer, 700)
    passes(harness, world)
    assert {round(at) for at, *_ in world.asked} == {20, 22}


def test_hints_that_come_too_early_cost_little(
    harness: Harness, plan: Callable[..., Planned]
) -> None:
    """One that says that all are here before they are leads to ordinary looking."""
    times: list[float] = []

    def answer(_: str) -> Any:
        times.append(world.time_s - 1e9)
        return framework(3, 3 if times[-1] > 30 else 1, str(len(times)))

    world: Planned = plan({2: {"complete": True}}, answer)
    passes(harness, world)
    assert times[0] == 2
    assert max(b - a for a, b in itertools.pairwise(times)) <= 2


def test_where_the_leader_is_not_reached_it_looks_itself(
    harness: Harness, plan: Callable[..., Planned]
) -> None:
    """After some patience, as often as without the others."""
    world: Planned = plan(
        {}, lambda _: framework(3, 3 if world.time_s - 1e9 > 40 else 2, str(world.time_s))
    )
    passes(harness, world)
    assert round(world.asked[0][0]) == 20
    assert world.asked[-1][0] < 43


@pytest.mark.parametrize("is_there", [True, False])
def test_a_large_gang_without_its_leader_asks_at_most_fifty_times_a_second(
    harness: Harness, plan: Callable[..., Planned], is_there: bool
) -> None:
    """Whether the API server answers or not."""

    def answer(_: str) -> Any:
        if not is_there:
            raise Transient("refused", fault="platform")
        return framework(10_000, 9_999)

    world = plan({}, answer, 10_000)
    fails(harness, world, timeout="1h")
    times = sorted({at for at, path, _ in world.asked if "frameworks" in path and at < 3590})
    assert min(b - a for a, b in itertools.pairwise([0, *times])) >= 10_000 / 50


def test_a_right_that_is_missing_is_said_and_replaced(
    harness: Harness, plan: Callable[..., Planned]
) -> None:
    """Without the right to read Pods the Framework is looked at, from that moment on."""
    why = "this Pod's service account may not get pods in its namespace"
    world = plan({1: {"over": why}}, lambda _: framework(3, 3))
    passes(harness, world)
    assert f"the instances do not find each other: {why}" in world.log
    assert round(world.asked[0][0]) == 1


def test_a_leader_that_has_forgotten_holds_up_nobody(
    harness: Harness, plan: Callable[..., Planned]
) -> None:
    """While the leader is reached the server is still looked at, seldom."""
    world = plan({1: {"connected": True}}, lambda _: framework(3, 3))
    passes(harness, world)
    assert 90 <= world.asked[0][0] <= 92


def test_a_large_gang_with_a_leader_asks_nobody(
    harness: Harness, plan: Callable[..., Planned]
) -> None:
    """Ten thousand that wait for one of them ask only when their time is up, to say who."""
    world = plan({1: {"connected": True}}, lambda _: framework(10_000, 9_999), 10_000)
    failure = fails(harness, world)
    assert failure.kind == "timeout"
    assert "w-9999" in failure.message
    assert min(at for at, *_ in world.asked) >= 599


RUNNING = {"runTime": "2026-11-23T05:47:57Z"}


@pytest.mark.parametrize("size", [3, 10_000])
def test_a_leader_that_was_replaced_finds_the_gang_running(
    harness: Harness, plan: Callable[..., Planned], size: int
) -> None:
    """It is released as soon as its own address is known; nobody registers any more."""

    def answer(_: str) -> Any:
        late = world.time_s - 1e9 > 3
        found = framework(size, size, "2" if late else "1", **RUNNING)
        if not late:
            tasks = found["status"]["attemptStatus"]["taskRoleStatuses"][0]["taskStatuses"]
            tasks[0]["attemptStatus"]["podUID"] = "the one before"
        return found

    world: Planned = plan({0: {"leads": True, "connected": True}}, answer, size)
    passes(harness, world)
    assert world.asked[0][0] == 0
    assert world.asked[-1][0] < 5


@pytest.mark.parametrize("connected", [False, True])
def test_who_joins_a_running_gang_asks_at_once(
    harness: Harness, plan: Callable[..., Planned], connected: bool
) -> None:
    """The leader's Pod says that it runs; without a key it does not answer."""
    world = plan({0.2: {"leader_runs": True, "connected": connected}}, lambda _: framework(3, 3))
    passes(harness, world)
    assert [round(at, 3) for at, *_ in world.asked] == [0.3]


@pytest.mark.parametrize("leads", [False, True])
@pytest.mark.parametrize("known_at", [n / 4 for n in range(20)])
def test_who_joins_a_running_gang_passes_soon_after_its_address_is_known(
    harness: Harness, plan: Callable[..., Planned], known_at: float, leads: bool
) -> None:
    """A check is at most 1.25 s after the last one, and the first 0.3 s after the start."""

    def answer(_: str) -> Any:
        is_known = world.time_s - 1e9 >= known_at
        return framework(3, 3 if is_known else 2, str(int(is_known)), **RUNNING)

    world: Planned = plan({0: {"leads": leads, "leader_runs": not leads}}, answer)
    passes(harness, world)
    assert world.asked[-1][0] <= max(0.3, known_at + 1.25)


def test_a_leader_that_runs_and_knows_all_is_believed_first(
    harness: Harness, plan: Callable[..., Planned]
) -> None:
    """With the key, PID 1 of the leader answers at once; the API server is not asked for Pods."""
    script = {0.1: {"leader_runs": True}, 0.2: {"complete": True, "peers": _peers(900)}}
    world = plan(script, lambda _: pytest.fail("nobody is asked"), 900)
    assert len(_addresses(passes(harness, world))) == 900


def test_a_leader_waits_for_the_others_of_a_gang_that_starts(
    harness: Harness, plan: Callable[..., Planned]
) -> None:
    """They have addresses, but need it still: they would wait for a leader that is gone."""
    script = {0: {"leads": True, "connected": True}, 7: {"complete": True, "peers": _peers(3)}}
    world = plan(script, lambda _: framework(3, 3))
    passes(harness, world)
    assert [round(at) for at, *_ in world.asked] == [0, 7]


def test_a_leader_that_is_lost_is_replaced_by_looking(
    harness: Harness, plan: Callable[..., Planned]
) -> None:
    """From the moment on at which nobody is there any more who would tell."""
    world = plan({1: {"connected": True}, 50: {"connected": False}}, lambda _: framework(3, 3))
    passes(harness, world)
    assert round(world.asked[0][0]) == 50


def test_a_server_in_trouble_at_the_end_does_not_matter(
    harness: Harness, plan: Callable[..., Planned]
) -> None:
    """What the tasks said is enough where the Framework cannot be read once more."""
    from pairun.module import Transient

    def fail(_: str) -> Any:
        raise Transient("the API server is limited", fault="platform")

    world = plan({1: {"complete": True, "peers": _peers(3)}}, fail)
    assert _addresses(passes(harness, world)) == ["10.0.0.0", "10.0.0.1", "10.0.0.2"]

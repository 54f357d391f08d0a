"""How often the barrier asks, and when it gives up."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from pairun.module import Permanent, Transient

if TYPE_CHECKING:
    from tests.modules.conftest import Harness
from tests.modules.barrier.conftest import Object, World, fails, framework, passes


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
    assert ctx.log == ["it says 503; retrying", "2 of 2 tasks have addresses"]


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

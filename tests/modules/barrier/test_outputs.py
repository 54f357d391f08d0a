"""What the barrier writes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.modules.conftest import Harness
from tests.modules.barrier.conftest import World, framework, passes


def test_a_log_that_cannot_be_kept(harness: Harness, world: Callable[..., World]) -> None:
    """Is said once, and the barrier goes on."""
    (harness.pai_dir / "logs").write_text("a file")
    ctx = world(lambda ctx, _: framework(2, len(ctx.asked), str(len(ctx.asked))))
    passes(harness, ctx)
    assert sum("cannot write barrier.log" in line for line in ctx.log) == 1


def test_the_injector_has_the_roles_in_the_jobs_order(
    harness: Harness, world: Callable[..., World]
) -> None:
    names = ["w", "e", "d", "c", "b", "a"]
    found = framework(1, 1)
    (status,) = found["status"]["attemptStatus"]["taskRoleStatuses"]
    found["spec"]["taskRoles"] = [{"name": name, "taskNumber": 1} for name in names]
    found["status"]["attemptStatus"]["taskRoleStatuses"] = [{**status, "name": n} for n in names]
    passes(harness, world(lambda *_: found))
    injector = (harness.pai_dir / "injector.sh").read_text()
    assert re.findall("export FB_(.)_IPS=10.0.0.0\n", injector) == [n.upper() for n in names]

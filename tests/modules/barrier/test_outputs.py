"""What the barrier writes."""

from __future__ import annotations

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

"""The module mount_storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.modules.conftest import Harness


def test_it_says_that_nothing_is_mounted(harness: Harness) -> None:
    """Whatever storages are named, the task is skipped with the reason."""
    skip = harness.run("mount_storage", {"configs": ["a", "b"]}).skip
    assert skip is not None
    assert "volumes of the Pod" in skip.because

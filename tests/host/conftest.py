"""This machine as a context."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pairun.host.context import HostContext

ENV = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


@pytest.fixture
def ctx(tmp_path: Path) -> HostContext:
    """This machine, with a volume below the test's directory."""
    (tmp_path / "pai").mkdir()
    return HostContext(ENV, str(tmp_path / "pai"))

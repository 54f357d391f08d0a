"""The built-in rules, read once."""

from __future__ import annotations

import pytest

from pairun.diagnose.table import Table
from tests.incident.jobs import rules


@pytest.fixture(scope="session")
def table() -> Table:
    """Return the built-in rules."""
    return rules()

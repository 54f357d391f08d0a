"""The built-in rules, read once, and what asks them."""

from __future__ import annotations

import pytest

from pairun.diagnose.table import Table
from pairun.errors import Problems
from pairun.playbook.content import Content, built_in_root
from pairun.playbook.rules import Rules, read_rules


@pytest.fixture(scope="session")
def rules() -> Rules:
    """The built-in rules."""
    return read_rules(Content([built_in_root()]), Problems())


@pytest.fixture(scope="session")
def table(rules: Rules) -> Table:
    """Their table."""
    return rules.table()

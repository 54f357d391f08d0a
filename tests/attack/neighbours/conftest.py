"""Hostile servers and peers: fixtures of the rooms that speak with them."""

from __future__ import annotations

from tests.modules.conftest import harness
from tests.modules.git_clone.conftest import served
from tests.modules.image_check.conftest import ask, elsewhere, registry
from tests.rendezvous.conftest import gathering

__all__ = ["ask", "elsewhere", "gathering", "harness", "registry", "served"]

"""Fixtures of the rendezvous, for the meetings of versions."""

from __future__ import annotations

from tests.rendezvous.conftest import background, gathering

__all__ = ["background", "gathering"]

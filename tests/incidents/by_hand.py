"""Incidents that need hardware, written by the documented form of what a framework writes."""

from __future__ import annotations

from tests.incidents.incident import Incident

INCIDENTS: dict[str, Incident] = {}


def write(name: str, folder: str) -> None:
    """Write an incident's files."""
    raise NotImplementedError

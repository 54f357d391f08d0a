"""The context of a review that probes this machine, read-only."""

from __future__ import annotations

from pairun.host.context import HostContext
from pairun.host.worlds import read_only

ProbeContext = read_only(HostContext, "ProbeContext")
"""This machine, read-only: an attempted change is a bug of the module."""

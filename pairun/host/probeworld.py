"""The world of a review that probes where it stands: this machine, to read."""

from __future__ import annotations

from pairun.host.context import HostContext
from pairun.host.worlds import read_only

ProbeContext = read_only(HostContext, "ProbeContext")
"""This machine, to read: a change is a bug of the module."""

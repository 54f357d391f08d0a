"""Where a task of the runtime phase reads the instances of the job."""

from __future__ import annotations

import os

from pairun.base.paths import CLUSTER_FILE, MOVED_FILE, runtime_file
from pairun.module.context import Context

RESTARTS = "PAIRUN_RESTARTS"
"""How often this container has restarted in its Pod since init ran; not set at its first start."""


def cluster_path(ctx: Context) -> str:
    """The path of ``cluster.json``: init's, or after a restart the one with moved instances."""
    if ctx.env.get(RESTARTS):
        moved = os.path.join(ctx.pai_dir, MOVED_FILE)
        if ctx.stat(moved) is not None:
            return moved
    return runtime_file(ctx.pai_dir, CLUSTER_FILE)

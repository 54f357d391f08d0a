"""The paths of ssh's files."""

from __future__ import annotations

import os

from pairun.module import Context


def ssh_folder(ctx: Context) -> str:
    """The folder on the shared volume with all files of ssh."""
    return os.path.join(ctx.pai_dir, "run", "ssh")

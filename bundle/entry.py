"""Where the bundle begins: frozen as ``pairun_bundle``, and called by main.c."""

from __future__ import annotations

import sys

COMMANDS = ("runtime", "tasks", "summary", "barrier", "progress", "rendezvous")
"""What the bundle can do; the rest of pairun's commands need what only init's image has."""


def main() -> int:
    """Run what the arguments ask for: the runtime phase, unless they begin with a command."""
    argv = sys.argv[1:]
    if not argv or argv[0] == "--":
        # PID 1 lives as long as the job: without what only arguments need.
        from pairun.base.paths import pai_dir
        from pairun.runtime.main import main as phase
        from pairun.secrets.vault import Vault

        return phase(pai_dir(), Vault(), argv[1:])
    if argv == ["--version"]:
        print(version())
        return 0
    from pairun.cli.main import main as command

    return command(argv if argv[0] in COMMANDS else ["runtime", *argv])


def version() -> str:
    """The versions of pairun and of everything else in this file, one a line."""
    from pairun_bundle_inside import PARTS  # type: ignore[import-not-found]

    import pairun

    python = sys.version.partition(" ")[0]
    return "\n".join([f"pairun {pairun.__version__}", f"with CPython {python} and", *PARTS])

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
    if sorted(argv) == ["--json", "--version"]:
        print(bill_of_materials())
        return 0
    from pairun.cli.main import main as command

    return command(argv if argv[0] in COMMANDS else ["runtime", *argv])


def version() -> str:
    """The versions of pairun and of everything else in this file, one a line."""
    from pairun_bundle_inside import DEBIAN, PYTHON  # type: ignore[import-not-found]

    import pairun

    python = sys.version.partition(" ")[0]
    inside = sorted(
        [f"{n} {v}" for n, v, _, linked in DEBIAN if linked] + [f"{n} {v}" for n, v in PYTHON]
    )
    return "\n".join([f"pairun {pairun.__version__}", f"with CPython {python} and", *inside])


def bill_of_materials() -> str:
    """What this file and its tools are made of, as CycloneDX."""
    from pairun_bundle_inside import DEBIAN, PYTHON

    from pairun.handover.sbom import debian_source, document, python_package

    components = [debian_source(*each) for each in DEBIAN]
    return document("pairun-bundle", [*components, *(python_package(*each) for each in PYTHON)])

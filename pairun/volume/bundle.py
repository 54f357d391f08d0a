"""What init hands over to an image that has nothing: pairun, certificates, tools, the barrier script."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping

from pairun.errors import PairunError
from pairun.volume.door import Door

_VARIABLE = "PAIRUN_BUNDLE"
"""Overrides the bundle's path; for tests, and for images that keep it elsewhere."""

IN_THE_IMAGE = "/opt/pairun/runtime"

PROVIDED = "PAIRUN_PROGRAM"
"""The program's path in the user's container if the platform mounts it: then init copies none."""


def find_bundle(env: Mapping[str, str]) -> str | None:
    """The bundle of this pairun: the image's, or else what ``make bundle`` built in this checkout.

    Args:
        env: `_VARIABLE` overrides the path; an empty value disables the bundle.

    Returns:
        Its path, or None if there is no bundle: then the user's image must bring its own pairun.

    Raises:
        PairunError: the variable names no executable file.
    """
    if _VARIABLE in env:
        path = env[_VARIABLE]
        if path and not _is_program(path):
            message = f"{_VARIABLE}={path}: no such program"
            raise PairunError.of("PR701", message, hint="unset it to use the image's own bundle")
        return path or None
    checkout = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    places = (IN_THE_IMAGE, os.path.join(checkout, "build", "bundle", "runtime"))
    return next((path for path in places if _is_program(path)), None)


def find_own_authorities(env: Mapping[str, str]) -> str | None:
    """The file of certificate authorities that init itself trusts.

    Args:
        env: ``SSL_CERT_FILE`` names the file.

    Returns:
        Its path, or None if there is none.
    """
    # Imported here: only init needs TLS for this, and other commands import this file.
    import ssl

    from pairun.net.authorities import PLACES

    named = env.get("SSL_CERT_FILE") or ssl.get_default_verify_paths().cafile
    places = (named, *PLACES) if named else PLACES
    return next((path for path in places if os.access(path, os.R_OK)), None)


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


TOOLS_VARIABLE = "PAIRUN_TOOLS"
"""Overrides the tool folder; for tests, and for images that keep it elsewhere."""

TOOLS_IN_THE_IMAGE = "/opt/pairun/tools"


def find_tools(env: Mapping[str, str]) -> str:
    """The tool folder: the image's, or else what ``make bundle`` built in this checkout.

    Args:
        env: `TOOLS_VARIABLE` overrides it.
    """
    checkout = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    built = os.path.join(checkout, "build", "bundle", "tools")
    return env.get(TOOLS_VARIABLE) or (
        TOOLS_IN_THE_IMAGE if os.path.isdir(TOOLS_IN_THE_IMAGE) else built
    )


def copy_tools(names: Iterable[str], folder: str, target: str, door: Door) -> None:
    """Copy programs; missing ones are skipped, and their modules report it when they run.

    Raises:
        OSError: a program cannot be copied.
    """
    for name in sorted(set(names)):
        source, copy = os.path.join(folder, name), os.path.join(target, name)
        if os.path.isfile(source):
            door.make_folder(os.path.dirname(copy))
            door.copy_in(source, copy, 0o755)


BARRIER_FILE = "barrier"
"""The program's name in ``runtime.d``."""

_BARRIER = """\
#!/bin/sh
# All instances of the job wait for each other: barrier [--timeout=SECONDS]
timeout=300
while [ $# -gt 0 ]; do
  case $1 in
    --timeout=* | -timeout=*) timeout=${{1#*=}} ;;
    --timeout | -timeout) timeout=${{2:-}}; [ $# -lt 2 ] || shift ;;
    *) echo "barrier: unknown option $1; only --timeout=SECONDS is known" >&2; exit 2 ;;
  esac
  shift
done
case ${{PAI_TASK_ROLE_INSTANCES:-}} in
  *,*) ;;
  *) echo "barrier: this job has one instance, so nobody waits" >&2; exit 0 ;;
esac
# A barrier opens once. The next call has the next number; one that failed is tried under its own.
count={count}
number=0
[ ! -e "$count" ] || read -r number <"$count"
{pairun} barrier wait "runtime.d/barrier $number" --timeout "${{timeout}}s" || exit
echo $((number + 1)) >"$count"
"""


def barrier_script(pai_dir: str, program: str) -> bytes:
    """The script's text.

    Args:
        pai_dir: the shared volume, as the user's container sees it.
        program: the path of ``pairun`` there.
    """
    count = shlex.quote(os.path.join(pai_dir, "run", "barriers"))
    return _BARRIER.format(count=count, pairun=shlex.quote(program)).encode()

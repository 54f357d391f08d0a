"""The program ``runtime.d/barrier`` of OpenPAI's fork, as a script around ``pairun barrier``."""

from __future__ import annotations

import os
import shlex

BARRIER_FILE = "barrier"
"""The program's name in ``runtime.d``."""

_SCRIPT = """\
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
    return _SCRIPT.format(count=count, pairun=shlex.quote(program)).encode()

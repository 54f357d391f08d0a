"""How the job of a local run ended; its instances may have ended differently."""

from __future__ import annotations

import os
from collections.abc import Sequence

from pairun.base.folder import open_regular
from pairun.base.foreignjson import parse_record
from pairun.base.runfolders import OUTCOME
from pairun.report.journal.pastinstances import InstancePast

_MOST_BYTES = 1 << 16


def success_despite_failures(instances: Sequence[InstancePast]) -> str:
    """Explain why a job succeeded although instances failed; empty in every other case.

    Args:
        instances: the instances of one run.
    """
    failed = sum(i.outcome == "failed" for i in instances)
    because = _why_it_succeeded(instances)
    if not (failed and because):
        return ""
    return f"the job succeeded by its completion policy, {although(failed)}: {because}"


def although(failed: int) -> str:
    """A note about instances that failed in a job that succeeded."""
    return f"although {failed} instance{'s' * (failed != 1)} failed"


def _why_it_succeeded(instances: Sequence[InstancePast]) -> str:
    outputs = [log for i in instances for log in i.logs if os.path.basename(log) == "output.log"]
    folders = {os.path.dirname(os.path.dirname(output)) for output in outputs}
    if len(folders) != 1:
        return ""
    try:
        with open(open_regular(os.path.join(folders.pop(), OUTCOME), os.O_RDONLY), "rb") as f:
            outcome = parse_record(f.read(_MOST_BYTES))
    except OSError:
        # an older run, or one that still runs
        return ""
    if outcome is None or outcome.get("succeeded") is not True:
        return ""
    because = outcome.get("because")
    return because if isinstance(because, str) else ""

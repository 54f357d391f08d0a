"""Start scripts in bash."""

from __future__ import annotations

import os

from tests.incidents.incident import Incident, Label, alone

_UNBOUND = """set -euo pipefail
echo "starting on $(hostname)"
mkdir -p output
echo "data: $DATA_DIR"
python saving.py
"""
_SOURCE = """set -e
echo "preparing"
source /opt/cluster/env.sh
python saving.py
"""


def _incident(label: Label, text: str) -> Incident:
    """Return an incident whose process is a script with this text."""

    def write(job: str) -> None:
        with open(os.path.join(job, "start.sh"), "w") as f:
            f.write(text)

    return Incident(label, alone("bash start.sh"), files=write)


INCIDENTS: dict[str, Incident] = {
    "shell-unbound": _incident(
        Label("a variable that is not set, under nounset", "shell_error", "after_fix"), _UNBOUND
    ),
    "shell-source": _incident(
        Label(
            "the file given to source is missing",
            "shell_error", "after_fix", None, ["file_not_found"],
        ),
        _SOURCE,
    ),
}  # fmt: skip

"""A rewritten log shows what its file has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pairun.diagnose.table import Table
from tests.diagnose.jobs import KEY_ERROR, incident_of, write

TRACE = "".join(f"{line}\n" for line in KEY_ERROR.splitlines()[1:])
FORMS = {
    "headers of tail": f"==> w-0.log <==\nstep 1\nstep 2\n\n==> w-1.log <==\nstep 1\n{TRACE}",
    "JSON": "".join(
        json.dumps(
            {"ts": "2026-03-01T12:04:16Z", "level": "error", "pod": f"w-{k % 2}", "msg": text}
        )
        + "\n"
        for k, text in enumerate(["step 1", "step 1", "step 2", TRACE, "step 3", "step 3"])
    ),
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_evidence_is_a_part_of_the_line_that_it_names(
    tmp_path: Path, table: Table, text: str
) -> None:
    """What rewriting adds, such as the name of a Pod, is not shown."""
    incident = incident_of(write(tmp_path, {"all.log": text}), table)
    shown = incident.diagnosis.evidence[0]
    assert incident.diagnosis.klass == "user_code_error"
    assert shown.text in text.splitlines()[shown.line - 1]
    assert shown.text == "KeyError: 'label'"

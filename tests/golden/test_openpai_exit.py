"""Exit codes and termination messages as OpenPAI's exit handler made them of the same logs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from pairun.errors import Problems, Source
from pairun.openpai.exitspec import read_exit_spec
from pairun.runtime.exitmatching import ExitEvidence, match
from pairun.runtime.exitsummary import summarise
from pairun.runtime.termination import ERROR_END, ERROR_START, message
from tests.conftest import SHARED

GOLDEN = SHARED / "openpai" / "golden"
CASES = GOLDEN / "exit" / "cases.json"

pytestmark = pytest.mark.shared


def _cases() -> list[Any]:
    known = json.loads(CASES.read_text()) if CASES.exists() else []
    # Two cases are of a spec that is not there.
    return [c for c in known if (GOLDEN / c["spec"]).exists()]


def _spec(name: str) -> tuple[Mapping[str, Any], Problems]:
    problems = Problems()
    path = GOLDEN / name
    source = Source(str(path), "cluster", path.read_text())
    return read_exit_spec(source, problems).data, problems


def _parsed(text: str) -> Any:
    found = re.search(re.escape(ERROR_START) + r"([\s\S]*)" + re.escape(ERROR_END), text)
    assert found is not None
    return yaml.safe_load(found[1])


@pytest.mark.parametrize("case", _cases(), ids=lambda c: str(c["name"]))
def test_a_failure_gets_the_code_and_the_message_it_got(case: dict[str, Any]) -> None:
    """Code, matched text and excerpts agree; what differs is what the original got wrong."""
    spec, _ = _spec(case["spec"])
    folder = GOLDEN / "exit"
    user = (folder / f"{case['name']}.user.log").read_bytes()
    platform = (folder / f"{case['name']}.runtime.log").read_bytes()
    evidence = ExitEvidence(case["code"], user, platform, double_ecc=False)
    summary = summarise(match(spec, evidence), evidence)
    text = message(summary)
    assert len(text.encode()) <= 4096
    ours, theirs = _parsed(text), _parsed(case["out"])
    if case["spec"].endswith("standalone.yaml"):
        # An empty pattern is a mistake in the spec, not a match for everything.
        assert summary.exit_code == 255
        return
    assert summary.exit_code == case["rc"]
    logs, their_logs = ours.pop("errorLogs"), theirs.pop("errorLogs")
    assert ours == theirs
    if case["size"] > 4096:
        # It exceeded the limit by two bytes.
        assert their_logs["user"].endswith(logs["user"][-1000:])
        return
    for name in ("user", "platform"):
        if "matched" not in str(theirs):
            assert logs[name] == their_logs[name]
            continue
        # The original puts blank lines around the match, and fewer lines of the log.
        ours_in = {line for line in logs[name].split("\n") if line}
        assert {line for line in their_logs[name].split("\n") if line} <= ours_in


def test_the_spec_of_a_real_cluster_is_read_whole() -> None:
    """Every entry of the spec that OpenPAI deploys is usable."""
    spec, problems = _spec("runtime-exit-spec.pai.yaml")
    assert [p.message for p in problems] == []
    assert len(spec["specs"]) == 27


def test_an_empty_pattern_is_an_error_of_the_spec() -> None:
    """The spec that matches everything by accident is refused at that entry, and named."""
    spec, problems = _spec("runtime-exit-spec.standalone.yaml")
    assert [p.id for p in problems] == ["PR744"]
    assert 128 not in [s["code"] for s in spec["specs"]]

"""The module job_environment."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.effort import cases

if TYPE_CHECKING:
    from tests.modules.conftest import Harness

SHARED = Path(os.environ.get("PAIRUN_SHARED", Path(__file__).parents[2] / "../shared"))


def written(harness: Harness) -> Path:
    """The file of variables."""
    return harness.pai_dir / "runtime.d" / "runtime_env.sh"


def test_both_files_are_written_once(harness: Harness) -> None:
    """One line per variable in order, the data as JSON, and a second run changes nothing."""
    args = {"environment": [["B", "1"], ["A", "it's"]], "cluster": {"tasks": [{"ip": "ü"}]}}
    module = harness.make("job_environment", args)
    assert harness.review(module) == "will_change"
    outcome = harness.run("job_environment", args)
    assert outcome.failure is None
    assert written(harness).read_text() == "export B='1'\nexport A='it'\\''s'\n"
    cluster = json.loads((harness.pai_dir / "runtime.d" / "cluster.json").read_text())
    assert cluster == args["cluster"]
    assert written(harness).stat().st_mode & 0o7777 == 0o644
    harness.changes_nothing(module)


def test_a_changed_environment_is_written_again(harness: Harness) -> None:
    """Other variables are a change from other content."""
    harness.run("job_environment", {"environment": [["A", "1"]]})
    outcome = harness.run("job_environment", {"environment": [["A", "2"]]})
    assert outcome.verdict is not None
    assert outcome.verdict.because == "write runtime_env.sh"
    assert outcome.verdict.before == "other content"
    assert written(harness).read_text() == "export A='2'\n"


def test_what_a_shell_cannot_name_is_left_out(harness: Harness) -> None:
    """A name that would break the sourced file is not written, and the log says so."""
    harness.run("job_environment", {"environment": [["A-B", "1"], ["x;reboot", "2"], ["C", "3"]]})
    assert written(harness).read_text() == "export C='3'\n"
    assert len([line for line in harness.log if "is left out" in line]) == 2


def test_a_pair_has_two_items(harness: Harness) -> None:
    """Anything but a pair is an argument problem."""
    problems = harness.problems("job_environment", {"environment": [["A"], ["A", "1"]]})
    assert [p.message for p in problems] == ["environment.0 must be a pair of name and value"]


def test_a_link_on_the_volume_is_not_followed(harness: Harness) -> None:
    """Nothing is written through a directory that someone made a link."""
    elsewhere = harness.tmp / "elsewhere"
    elsewhere.mkdir()
    (harness.pai_dir / "runtime.d").symlink_to(elsewhere)
    failure = harness.run("job_environment", {"environment": []}).failure
    assert failure is not None
    assert failure.kind == "permanent"
    assert list(elsewhere.iterdir()) == []


@settings(max_examples=cases(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_a_shell_reads_every_value_back(harness: Harness, value: str) -> None:
    """Whatever a value holds, a shell that sources the file sees exactly that."""
    harness.run("job_environment", {"environment": [["PAI_X", value]]})
    script = f'. {written(harness)}; printf "%s" "$PAI_X"'
    out = subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, check=True).stdout
    assert out == value.encode()


@pytest.mark.shared
@pytest.mark.parametrize("name", ["env_taskrole.sh", "env_taskrole1.sh"])
def test_bytes_are_those_of_openpai(harness: Harness, name: str) -> None:
    """Given OpenPAI's variables the file equals OpenPAI's, byte by byte."""
    golden = (SHARED / "openpai" / "golden" / name).read_bytes()
    pairs = re.findall(r"^export (\w+)='(.*)'$", golden.decode(), re.MULTILINE)
    assert len(pairs) > 5
    harness.run("job_environment", {"environment": [list(pair) for pair in pairs]})
    assert written(harness).read_bytes() == golden

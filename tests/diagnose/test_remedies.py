"""What helps against a class of failure: what to check, the command that checks it, what mends it."""

from __future__ import annotations

import subprocess

import pytest

from pairun.diagnose.classes import CLASSES, NONE, UNKNOWN
from pairun.diagnose.remedies import REMEDIES
from pairun.playbook.content import Content, built_in_root
from pairun.report.pages import failure_lines


def test_every_class_has_a_remedy() -> None:
    """All but the two classes without a cause have one."""
    assert CLASSES.keys() - {NONE, UNKNOWN} == REMEDIES.keys()


@pytest.mark.parametrize("field", ["check", "command", "mend"])
def test_a_remedy_is_whole(field: str) -> None:
    """Every field is one line."""
    for name, remedy in REMEDIES.items():
        text = getattr(remedy, field)
        assert text, name
        assert "\n" not in text, name


def test_commands_are_commands_of_a_shell() -> None:
    """A shell parses every command, except the two that are lines of Python or variables to set."""
    script = "\n".join(r.command for n, r in REMEDIES.items() if n != "shape_or_index_error")
    assert subprocess.run(["bash", "-n"], input=script.encode(), check=False).returncode == 0


def test_the_page_of_a_class_shows_its_remedy() -> None:
    """``pairun doc gpu_oom`` shows what to check, the command, and what mends it."""
    lines = list(failure_lines("gpu_oom", Content([built_in_root()])))
    remedy = REMEDIES["gpu_oom"]
    assert f"  check  {remedy.check}" in lines
    assert f"         $ {remedy.command}" in lines
    assert f"  mend   {remedy.mend}" in lines

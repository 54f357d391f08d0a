"""What helps against a class of failure: what to check, the command that checks it, what mends it."""

from __future__ import annotations

import subprocess

import pytest

from pairun.diagnose.classes import CLASSES, NONE, UNKNOWN
from pairun.playbook.content import Content, built_in_root
from pairun.report.pages import document

_WITH_CAUSE = {name: kind for name, kind in CLASSES.items() if name not in (NONE, UNKNOWN)}


@pytest.mark.parametrize("field", ["check", "command", "mend"])
def test_every_class_has_a_remedy(field: str) -> None:
    """All but the two classes without a cause have one; every field is one line."""
    for name, kind in _WITH_CAUSE.items():
        text = getattr(kind, field)
        assert text, name
        assert "\n" not in text, name


def test_commands_are_commands_of_a_shell() -> None:
    """A shell parses every command, except the two that are lines of Python or variables to set."""
    script = "\n".join(k.command for n, k in _WITH_CAUSE.items() if n != "shape_or_index_error")
    assert subprocess.run(["bash", "-n"], input=script.encode(), check=False).returncode == 0


def test_the_page_of_a_class_shows_its_remedy() -> None:
    """``pairun doc gpu_oom`` shows what to check, the command, and what mends it."""
    lines = list(document(["gpu_oom"], Content([built_in_root()]), ()))
    remedy = CLASSES["gpu_oom"]
    assert f"  check  {remedy.check}" in lines
    assert f"         $ {remedy.command}" in lines
    assert f"  mend   {remedy.mend}" in lines

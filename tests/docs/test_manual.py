"""The manual page is legible to man, and names every command and option."""

from __future__ import annotations

import pathlib
import shutil
import subprocess

import pytest

from pairun.cli.main import parser_of, shown_commands

PAGE = pathlib.Path(__file__).parents[2] / "docs/pairun.1"


def test_the_page_names_every_command_and_option() -> None:
    """What `--help` shows stands in the manual, too."""
    text = PAGE.read_text().replace("\\", "")
    for name in ("", *shown_commands()):
        if name:
            assert f".SS pairun {name}\n" in text
        for action in parser_of(name)._actions:
            for option in action.option_strings:
                if option not in ("-h", "--help") and action.help != "==SUPPRESS==":
                    assert option in text


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff")
def test_groff_formats_the_page_without_a_warning() -> None:
    """groff, which man calls, has nothing to complain about."""
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", str(PAGE)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert not done.stderr
    assert "pairun barrier wait" in done.stdout

"""The module user_command."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from pairun.module import Secret

if TYPE_CHECKING:
    from tests.modules.conftest import Harness


def text_of(harness: Harness, **args: Any) -> str:
    """The file that the shell would run."""
    text = harness.make("user_command", args).script_text()  # type: ignore[attr-defined]
    assert isinstance(text, str)
    return text


def test_it_is_never_run_as_a_task(harness: Harness) -> None:
    """A review shows it as unknown, and the executor refuses it."""
    module = harness.make("user_command", {"script": "echo hi"})
    assert harness.review(module) == "unknown"
    failure = harness.run("user_command", {"script": "echo hi"}).failure
    assert failure is not None
    assert failure.kind == "permanent"
    assert module.phases == ("runtime",)


@pytest.mark.parametrize("shell", ["bash", "sh"])
@pytest.mark.parametrize(
    ("script", "nounset", "code"),
    [
        ("true", True, 0),
        ("false\ntrue", True, 1),
        ("echo $PAIRUN_NOT_SET", True, None),
        ("echo $PAIRUN_NOT_SET", False, 0),
        ("echo '{{ 7*7 }}' # last line", True, 0),
    ],
)
def test_the_shell_runs_it_strictly(
    harness: Harness, shell: str, script: str, nounset: bool, code: int | None
) -> None:
    """The first failure and an unset variable end the command, in bash and in sh."""
    text = text_of(harness, script=script, nounset=nounset)
    done = subprocess.run([shell, "-s"], input=text.encode(), capture_output=True, check=False)
    assert done.returncode == code if code is not None else done.returncode != 0


def test_a_failure_within_a_pipe_counts_in_bash(harness: Harness) -> None:
    """Where the shell has pipefail it is on."""
    text = text_of(harness, script=Secret("false | true"))
    done = subprocess.run(["bash", "-s"], input=text.encode(), capture_output=True, check=False)
    assert done.returncode == 1
    assert text.endswith("false | true\n")

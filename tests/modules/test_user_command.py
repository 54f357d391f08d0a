"""The module user_command."""

from __future__ import annotations

import pathlib
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairun.base.forwarding import read_forwarding
from pairun.contract.arguments import build
from pairun.contract.loading import load_module
from pairun.module import Module, Secret

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


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({}, "exactly one of 'script' and 'argv'"),
        ({"script": "a", "argv": ["a"]}, "exactly one of 'script' and 'argv'"),
        ({"argv": []}, "must name a program"),
        ({"argv": [""]}, "must name a program"),
        ({"script": "a", "signals": {"TERM": "SIGUSR1"}}, "no signal 'TERM'"),
        ({"script": "a", "signals": {"SIGKILL": "SIGUSR1"}}, "SIGKILL is never forwarded"),
        ({"script": "a", "signals": {"SIGTERM": "USR1"}}, "'USR1' is neither"),
        ({"script": "a", "signals": {"SIGTERM": ["60"]}}, "'60' is neither"),
        ({"script": "a", "signals": {"SIGTERM": ["SIGUSR1", "60s"]}}, "ends with a wait"),
    ],
)
def test_what_makes_no_sense_is_refused(args: dict[str, Any], words: str) -> None:
    """A command is a script or a program, and signals are signals; else it is said why not."""
    module, problems = build(_the_class(), args)
    assert module is None
    assert any(words in p.message for p in problems), problems


NAMES = st.sampled_from([*sorted(signal.Signals.__members__), "TERM", ""])
ENTRIES = NAMES | st.sampled_from(["1s", "1m30s", "500ms", "0s", "60", "1.5h", "-1s", "s"])


@given(signals=st.dictionaries(NAMES, st.none() | ENTRIES | st.lists(ENTRIES, max_size=3)))
def test_pid1_reads_what_the_check_lets_pass(signals: dict[str, Any]) -> None:
    """The check of a playbook and PID 1 agree on every rewrite map."""
    _, problems = build(_the_class(), {"script": "a", "signals": signals})
    try:
        read_forwarding(signals, "group")
    except ValueError:
        assert problems
    else:
        assert not problems


def _the_class() -> type[Module]:
    root = pathlib.Path(__file__).parents[2]
    return load_module("user_command", str(root / "modules" / "user_command.py"))


@pytest.mark.parametrize(("compat", "code"), [("", 130), ("strict", 7)])
def test_strict_ignores_sigint_and_sigquit(harness: Harness, compat: str, code: int) -> None:
    """As OpenPAI's runtime, which starts the command in the background of a shell."""
    inner = "bash -c 'kill -QUIT $$; exit 7'"
    text = text_of(harness, script=f"kill -INT $$\n{inner}", compat=compat)
    done = subprocess.run(["bash", "-s"], input=text.encode(), capture_output=True, check=False)
    assert done.returncode == (code if compat else -signal.SIGINT)


def test_an_error_names_the_line_of_the_users_script(
    harness: Harness, tmp_path: pathlib.Path
) -> None:
    """Three lines precede the command; in OpenPAI's runtime they are 24."""
    script = tmp_path / "user.sh"
    script.write_text(text_of(harness, script="no-such-program"))
    done = subprocess.run(["bash", script], capture_output=True, text=True, check=False)
    assert "user.sh: line 4: no-such-program: command not found" in done.stderr

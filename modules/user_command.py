"""The user's command."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Literal

from pairun.module import (
    Context,
    Permanent,
    Result,
    Secret,
    StateModule,
    Verdict,
    arg,
    define,
    parse_duration,
    reveal,
    runs,
)

# Two are handled by the kernel alone, and one reports that a child of ours ended.
_NOT_PASSED_ON = {"SIGKILL", "SIGSTOP", "SIGCHLD", "SIGCLD"}


@define
class UserCommand(StateModule):
    """Run the user's command: the last task of the runtime phase.

    PID 1 starts it as its own child, forwards signals to it, keeps its output and returns its exit
    code.
    """

    phases = ("runtime",)
    privileges = "those of the command"
    example = "user_command: {script: python train.py}"
    verify = False

    script: str | Secret | None = arg("The command, as text for the shell.", default=None)
    argv: list[str] | None = arg(
        "The command as program and arguments, for an image without a shell; in place of script.",
        default=None,
    )
    nounset: bool = arg("An unset variable in the command is an error.", default=True)
    shell: Literal["auto", "bash", "sh"] = arg(
        "The shell; auto is bash if the image has it, else sh.", default="auto"
    )
    signals_to: Literal["group", "process"] = arg(
        "Who gets the signals: the command's process group, or only its main process.",
        default="group",
    )
    signals: dict[str, str | list[str] | None] = arg(
        "What is sent in place of a signal: another one, or a list of signals with waits between "
        "them ([SIGUSR1, 60s, SIGTERM]); [] sends none.",
        factory=dict,
    )

    on_stop: Literal["interrupted", "own"] | None = arg(
        "The exit code of a command that ends with 0 after a SIGTERM from outside the container: "
        "interrupted makes it 143, own leaves 0. The default is PAIRUN_ON_STOP, else own.",
        default=None,
    )

    compat: Literal["", "strict"] = arg(
        "strict: the command ignores SIGINT and SIGQUIT, as under OpenPAI's runtime.", default=""
    )

    def require(self) -> Iterator[str]:
        """There is a script or a program, and the signals exist."""
        if (self.script is None) == (self.argv is None):
            yield "give exactly one of 'script' and 'argv'"
        if self.argv is not None and (not self.argv or not self.argv[0]):
            yield "'argv' must name a program"
        if self.compat and self.script is None:
            yield "'compat' needs 'script'"
        if any("\0" in each for each in self.argv or ()):
            yield "'argv' must not hold a NUL character"
        for name, value in self.signals.items():
            if name not in signal.Signals.__members__:
                yield f"'signals': there is no signal '{name}'"
            elif name in _NOT_PASSED_ON:
                yield f"'signals': {name} is never forwarded"
            elif value is not None:
                yield from _steps(name, [value] if isinstance(value, str) else value)

    def probe(self, ctx: Context) -> None:
        """Probe nothing."""

    def plan(self, state: None) -> Verdict:
        """It runs your command."""
        return runs("your command")

    def apply(self, ctx: Context) -> Result:
        """Never called by the executor: PID 1 runs the command.

        Raises:
            Permanent: always.
        """
        message = "the user's command is run by PID 1, not as a task"
        raise Permanent(message, hint="start the phase with `pairun runtime`")

    def script_text(self) -> str:
        """The file that the shell runs; empty if the command is a program.

        It begins like that of OpenPAI's runtime: a failed command, an unset variable and a failure
        within a pipe end it. A plain sh may not support ``pipefail``, and an unsupported option
        would end the shell itself. So another shell is asked first.
        """
        if self.script is None:
            return ""
        lines = ["trap '' INT QUIT"] if self.compat else []
        lines.append("set -o errexit")
        if self.nounset:
            lines.append("set -o nounset")
        lines.append("if (set -o pipefail) 2>/dev/null; then set -o pipefail; fi")
        return "\n".join([*lines, reveal(self.script)]) + "\n"


def _steps(name: str, entries: list[str]) -> Iterator[str]:
    """The mistakes in the steps that replace a signal."""
    for entry in entries:
        if entry not in signal.Signals.__members__ and parse_duration(entry) is None:
            yield f"'signals.{name}': '{entry}' is neither a signal nor a wait like 60s"
    if entries and parse_duration(entries[-1]) is not None:
        yield f"'signals.{name}': it ends with a wait, after which nothing is sent"

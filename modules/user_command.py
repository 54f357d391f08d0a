"""The user's command."""

from __future__ import annotations

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
    reveal,
    unknown,
)


@define
class UserCommand(StateModule):
    """Run the user's command: the last task of the runtime phase.

    PID 1 runs it itself, as its own child, to forward signals to it, keep its output and pass its
    exit code on.
    """

    phases = ("runtime",)
    privileges = "those of the command"
    example = "user_command: {script: python train.py}"
    verify = False

    script: str | Secret = arg("The command, as text for the shell.")
    nounset: bool = arg("An unset variable in the command is an error.", default=True)
    shell: Literal["auto", "bash", "sh"] = arg(
        "The shell that reads it; auto is bash where the image has it, else sh.", default="auto"
    )

    def probe(self, ctx: Context) -> None:
        """There is nothing to look at."""

    def plan(self, state: None) -> Verdict:
        """Nobody knows what a command does."""
        return unknown("the user's command decides itself what it changes")

    def apply(self, ctx: Context) -> Result:
        """PID 1 runs it, never the executor.

        Raises:
            Permanent: always.
        """
        raise Permanent(
            "the user's command is run by PID 1, not as a task",
            hint="start the phase with `pairun runtime`",
        )

    def script_text(self) -> str:
        """The file that the shell runs.

        It begins as the one of OpenPAI's runtime does: a command that fails, an unset variable and
        a failure within a pipe end it. A plain sh may not know ``pipefail``; asking for what it
        does not know would end the shell itself, so it is asked in a shell of its own first.
        """
        lines = ["set -o errexit"]
        if self.nounset:
            lines.append("set -o nounset")
        lines.append("if (set -o pipefail) 2>/dev/null; then set -o pipefail; fi")
        return "\n".join([*lines, reveal(self.script)]) + "\n"

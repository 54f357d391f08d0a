"""Run a command or a shell script."""

from __future__ import annotations

import os
import re
import shlex
import signal
from collections.abc import Iterator
from typing import Literal

from pairun.module import (
    Completed,
    Context,
    Failure,
    Permanent,
    Result,
    Secret,
    StateModule,
    Transient,
    Verdict,
    arg,
    define,
    no_change,
    reveal,
    runs,
)

# Variables that a shell sets for itself; one that is not interactive drops PS1.
_NOT_EXPORTED = {"_", "SHLVL", "PWD", "OLDPWD", "PS1"}

_State = Literal["empty", "creates", "unless", "run"]


@define
class Cmd(StateModule):
    """Run a command, or a script in the shell (bash, else sh).

    Every run of the phase runs the command again, unless `creates` or `unless` shows that there is
    nothing to do.
    """

    privileges = "those of the command"
    example = "cmd: {script: 'make -j4 && ./prepare data', creates: /data/ready, workdir: /code}"
    verify = False

    argv: list[str] | None = arg("The program and its arguments, without a shell.", default=None)
    script: str | Secret | None = arg(
        "Text for the shell; it appears in no process list.", default=None
    )
    script_name: str = arg(
        "The script's `$0`, where the shell is bash 5 or later.", default="script"
    )
    errexit: bool = arg("The script ends at its first command that fails.", default=True)
    creates: str | None = arg("Skip the command if this path exists.", default=None)
    unless: str | None = arg("Shell text; skip the command if it exits with 0.", default=None)
    ok_codes: list[int] = arg("The exit codes that mean success.", factory=lambda: [0])
    workdir: str | None = arg(
        "The directory to run in; the container's own by default.", default=None
    )
    export: bool = arg("Pass the variables that the script exports to later tasks.", default=False)
    capture: bool = arg("Keep the output in the task's result instead of the log.", default=False)

    def require(self) -> Iterator[str]:
        """There is a command or a script, and the options fit it."""
        if (self.argv is None) == (self.script is None):
            yield "give exactly one of 'argv' and 'script'"
        if self.argv is not None and (not self.argv or not self.argv[0]):
            yield "'argv' must name a program"
        if self.argv is not None and self.export:
            yield "'export' needs a 'script': a program cannot export its variables"
        if not self.ok_codes:
            yield "'ok_codes' must hold at least one exit code"

    def probe(self, ctx: Context) -> _State:
        """Check whether there is anything to do."""
        if self.script is not None and not reveal(self.script).strip():
            return "empty"
        if (
            self.creates is not None
            and ctx.stat(os.path.join(self.workdir or "", self.creates)) is not None
        ):
            return "creates"
        if self.unless is not None:
            asked = ctx.query([_shell(ctx), "-c", self.unless], cwd=self.workdir)
            if asked.code == 0:
                return "unless"
        return "run"

    def plan(self, state: _State) -> Verdict:
        """Nothing to do, or it runs the command."""
        if state == "empty":
            return no_change("nothing to run")
        if state == "creates":
            return no_change(f"{self.creates} exists")
        if state == "unless":
            return no_change(f"`{self.unless}` succeeded")
        return runs("a command")

    def apply(self, ctx: Context) -> Result:
        """Run the command or script."""
        if self.argv is not None:
            done = ctx.run(self.argv, cwd=self.workdir, capture=self.capture)
            return self._result(ctx, done, os.path.basename(self.argv[0]), {})
        exported: dict[str, str | None] = {}
        shell = _shell(ctx)
        with open(os.memfd_create("pairun-environment"), "w+b") as report:
            # The text is a file in memory that the shell opens. It is in no argument list: every
            # user could read it there, and the limit is 128 KiB.
            done = ctx.run(
                [shell, "/proc/self/fd/0"],
                stdin=self._text(ctx, report.fileno()),
                cwd=self.workdir,
                capture=self.capture,
                pass_fds=[report.fileno()] if self.export else [],
            )
            if self.export and done.code in self.ok_codes:
                # Written through another file description: ours is still at offset 0.
                exported = _difference(ctx, report.read())
        return self._result(ctx, done, "the script", exported)

    def _text(self, ctx: Context, report_fd: int) -> bytes:
        """The script for the shell.

        Our own commands are on the script's first line, so that the line numbers in the shell's
        messages are the user's.
        """
        # No process that the script starts may inherit its text.
        first = [f"BASH_ARGV0={shlex.quote(self.script_name)}", "exec < /dev/null"]
        if self.errexit:
            first.append("set -o errexit")
        if self.export:
            cat = ctx.which("cat")
            if cat is None:
                raise Permanent("'export' needs the program cat, which is missing", fault="user")
            # Use the path: dash accepts no descriptor above 9 after `>&`.
            first.append(f"trap '{cat} /proc/self/environ > /proc/self/fd/{report_fd}' EXIT")
        text = "".join(f"{command}; " for command in first) + reveal(self.script or "") + "\n"
        return text.encode("utf-8", "surrogateescape")

    def _result(
        self, ctx: Context, done: Completed, name: str, exported: dict[str, str | None]
    ) -> Result:
        for line in done.stderr.decode("utf-8", "replace").splitlines():
            ctx.log(line)
        if done.code not in self.ok_codes:
            raise self._failure(done.code, name)
        values: dict[str, object] = {"code": done.code}
        if self.capture:
            values["stdout"] = done.stdout.decode("utf-8", "replace")
        message = f"{name} ended with exit code {done.code}"
        return Result(values=values, environment=exported, message=message)

    def _failure(self, code: int, name: str) -> Failure:
        if code < 0:
            message = f"{name} was killed by {_signal(-code)}"
            return Transient(message, fault="user", hint=_kill_hint(-code), exit_code=128 - code)
        sentence = f"{name} ended with exit code {code}"
        if code in (126, 127):
            why = "could not be executed" if code == 126 else "was not found"
            message = f"{sentence}: a program {why}"
            hint = "install it in the image, or correct the command"
            return Permanent(message, fault="user", hint=hint, exit_code=code)
        if code > 128 and (name_of := _signal(code - 128)).startswith("SIG"):
            message = f"{sentence}: a program in it was killed by {name_of}"
            return Transient(message, fault="user", hint=_kill_hint(code - 128), exit_code=code)
        if code == 0:
            sentence += f", and {self.ok_codes} means success"
        return Transient(sentence, fault="user", exit_code=code or None)


def _shell(ctx: Context) -> str:
    for name in ("bash", "sh"):
        if (path := ctx.which(name)) is not None:
            return path
    hint = "use 'argv' for a program that needs no shell, or an image with a shell"
    raise Permanent("there is neither bash nor sh in this container", fault="user", hint=hint)


def _difference(ctx: Context, environ: bytes) -> dict[str, str | None]:
    """The differences between the script's environment and the task's."""
    if not environ:
        message = "cannot export the variables of the script: it did not reach its end"
        hint = "'export' needs the shell's EXIT trap, and the script must not use exec"
        raise Permanent(message, fault="user", hint=hint)
    pairs = (v.partition("=") for v in environ.decode("utf-8", "surrogateescape").split("\0") if v)
    now = {name: value for name, _, value in pairs}
    # A shell may drop or keep names that are invalid in it (BASH_FUNC_x%%): ignore those.
    names = {n for n in now.keys() | ctx.env.keys() if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", n)}
    return {n: now.get(n) for n in sorted(names - _NOT_EXPORTED) if now.get(n) != ctx.env.get(n)}


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _kill_hint(number: int) -> str | None:
    if number == signal.SIGKILL:
        return "if no process sent it, the container exceeded its memory limit"
    return None

"""Keep the container so that people can inspect it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from pairun.module import (
    Context,
    Duration,
    Failure,
    Permanent,
    Result,
    Secret,
    StateModule,
    Verdict,
    arg,
    define,
    format_duration,
    no_change,
    reveal,
    will_change,
)

_LOOK_S = 0.5
# The end of the task's time, reserved to exit in order before it is stopped.
_RESERVE_S = 1.5


@define
class Hold(StateModule):
    """Keep the container for inspection: an exit handler for failures.

    It ends when the time is up, when the file `run/release` appears on the shared volume, at the
    task's `deadline`, or when the platform stops the container, whichever comes first. The
    container keeps its GPUs and all its other resources meanwhile.
    """

    phases = ("runtime",)
    privileges = "those of the command"
    example = "hold: {time: 30m, argv: [/usr/sbin/sshd, -D, -p, '2222']}"
    verify = False

    time: Duration = arg("The longest time; 0s does not hold.", bound="hold_max")
    argv: list[str] | None = arg(
        "A program to run during the hold, with its arguments; it ends with the hold.", default=None
    )
    script: str | Secret | None = arg(
        "Text for the shell (bash, else sh) to run during the hold, in place of argv.", default=None
    )
    container: str = arg(
        "The container's name, for the message that shows how to enter it.", default="app"
    )

    def require(self) -> Iterator[str]:
        """There is at most one thing to run."""
        if self.argv is not None and self.script is not None:
            yield "give 'argv' or 'script', or neither"
        if self.argv is not None and (not self.argv or not self.argv[0]):
            yield "'argv' must name a program"

    def probe(self, ctx: Context) -> bool:
        """Check whether the hold was already released."""
        return ctx.stat(_release(ctx)) is not None

    def plan(self, state: bool) -> Verdict:
        """Hold, unless it is not needed."""
        if self.time <= 0:
            return no_change("no hold time is set")
        if state:
            return no_change("it was released before it began")
        return will_change(f"keep the container for {format_duration(self.time)}", does="runs")

    def apply(self, ctx: Context) -> Result:
        """Log how to enter the container, run the command, and wait."""
        began = ctx.now()
        seconds, limited = self._seconds(ctx)
        ctx.log(f"the container is kept for {format_duration(seconds)}{limited}")
        for line in self._ways_in(ctx):
            ctx.log(line)
        end = began + seconds
        path = _release(ctx)

        def over() -> bool:
            return ctx.stat(path) is not None or ctx.now() >= end

        if not over():
            self._run(ctx, over)
        while not over():
            ctx.sleep(min(_LOOK_S, max(0.0, end - ctx.now())))
        held = format_duration(ctx.now() - began)
        why = f"{path} is there" if ctx.stat(path) is not None else "the time is up"
        return Result(message=f"kept for {held}: {why}")

    def _seconds(self, ctx: Context) -> tuple[float, str]:
        """The duration, and the reason for its limit."""
        left = ctx.remaining_s()
        if left is None or left - _RESERVE_S >= self.time:
            return self.time, ""
        asked = format_duration(self.time)
        return max(0.0, left - _RESERVE_S), f" instead of {asked}: the task may take no longer"

    def _ways_in(self, ctx: Context) -> Iterator[str]:
        pod = ctx.env.get("FC_POD_NAME") or ctx.env.get("POD_NAME") or ctx.env.get("HOSTNAME")
        namespace = ctx.env.get("FC_FRAMEWORK_NAMESPACE") or ctx.env.get("POD_NAMESPACE")
        where = f"{f'-n {namespace} ' if namespace else ''}{pod or 'POD'}"
        shell = _shell(ctx)
        if shell:
            yield f"get in:  kubectl exec -it {where} -c {self.container} -- {os.path.basename(shell)}"
            yield f"let go:  touch {_release(ctx)}"
        else:
            target = f"--target={self.container} --image=busybox"
            yield f"get in:  kubectl debug -it {where} {target}  (this image has no shell)"
            yield f"let go:  make the file {_release(ctx)}, or stop the job"

    def _run(self, ctx: Context, over: Callable[[], bool]) -> None:
        """Run the command; its failure is logged and does not end the hold."""
        argv, stdin = self.argv, None
        try:
            if self.script is not None:
                shell = _shell(ctx)
                if shell is None:
                    raise Permanent("there is no bash and no sh in PATH for the script")
                # Passed as input, it is in no list of processes.
                argv, stdin = [shell, "-s"], reveal(self.script).encode() + b"\n"
            if argv is None:
                return
            done = ctx.run(argv, stdin=stdin, until=over)
        except Failure as e:
            ctx.log(f"the command of the hold: {e.message}")
            return
        if not over():
            how = (
                f"ended with {done.code}" if done.code >= 0 else f"was ended by signal {-done.code}"
            )
            ctx.log(f"the command of the hold {how}; the container is kept")


def _release(ctx: Context) -> str:
    return os.path.join(ctx.pai_dir, "run", "release")


def _shell(ctx: Context) -> str | None:
    return ctx.which("bash") or ctx.which("sh")

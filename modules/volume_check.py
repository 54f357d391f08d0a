"""Check the volumes that the platform has mounted."""

from __future__ import annotations

from collections.abc import Iterator

from pairun.module import (
    CheckModule,
    Context,
    Duration,
    Permanent,
    Result,
    TimedOut,
    Transient,
    arg,
    define,
)


@define
class VolumeCheck(CheckModule):
    """Check that volumes are mounted, and that their servers answer.

    Without the check, a command that writes to an unmounted directory loses its results with the
    container, and a file server that hangs gives no message.
    """

    phases = ("runtime",)
    example = "volume_check: {paths: [/mnt/data]}"

    paths: list[str] = arg("The mount points.")
    answer_within: Duration = arg(
        "The longest time in which each must respond.", default=Duration(10.0)
    )

    def require(self) -> Iterator[str]:
        """The paths are absolute."""
        yield from (f"'paths' must be absolute, not {p}" for p in self.paths if p[:1] != "/")

    def check(self, ctx: Context) -> Result:
        """Check each volume.

        Raises:
            Permanent: nothing is mounted there.
            TimedOut: the mounted volume does not respond.
            Transient: it responds with an error.
        """
        mounted = {m.target for m in ctx.mounts()}
        missing = []
        for path in self.paths:
            try:
                if ctx.real_path(path, timeout_s=self.answer_within) not in mounted:
                    missing.append(path)
                    continue
                ctx.free_bytes(path, timeout_s=self.answer_within)
            except TimedOut:
                message = f"the volume at {path} does not answer within {self.answer_within:g}s"
                hint = "its server, or the network path to it, hangs"
                raise TimedOut(message, fault="platform", hint=hint) from None
            except OSError as e:
                message = f"the volume at {path} does not work: {e.strerror}"
                raise Transient(message, fault="platform") from e
        if missing:
            message = f"no volume is mounted at {', '.join(missing)}"
            raise Permanent(message, fault="platform")
        return Result(message=f"{', '.join(self.paths)}")

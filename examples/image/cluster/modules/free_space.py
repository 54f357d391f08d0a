"""A cluster's own module: a node whose disk is full is found before the job starts there."""

from __future__ import annotations

from pairun.module import CheckModule, Conflict, Context, Permanent, Result, arg, define


@define
class FreeSpace(CheckModule):
    """Check that a file system has space left."""

    phases = ("init",)
    example = "free_space: {path: /usr/local/pai, least_mb: 1024}"

    path: str = arg("A path on the file system.")
    least_mb: int = arg("The least that must be free, in MiB.")

    def check(self, ctx: Context) -> Result:
        """Ask df(1)."""
        asked = ctx.query(["df", "-Pm", self.path])
        if asked.code != 0:
            raise Permanent(f"df cannot tell about {self.path}", fault="platform")
        free = int(asked.stdout.splitlines()[-1].split()[3])
        if free < self.least_mb:
            raise Conflict(
                f"{free} MiB are free at {self.path}, {self.least_mb} are needed",
                fault="platform",
                hint="the job can start on another node",
            )
        return Result(message=f"{free} MiB are free")

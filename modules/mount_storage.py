"""Team storage."""

from __future__ import annotations

from typing import NoReturn

from pairun.module import CheckModule, Context, Skip, arg, define


@define
class MountStorage(CheckModule):
    """Accept OpenPAI's team-wise storage, and say that this version mounts nothing.

    In a cluster of today the storages are volumes of the Pod: OpenPAI's REST server puts them
    there, and no container has to mount anything.
    """

    example = "mount_storage: {configs: [team-data]}"
    not_yet = "nothing is mounted; storages are volumes of the Pod"

    configs: list[str] = arg("The names of the storages.", factory=list)

    def check(self, ctx: Context) -> NoReturn:
        """Say it.

        Raises:
            Skip: always.
        """
        raise Skip(f"not part of this version: {self.not_yet}")

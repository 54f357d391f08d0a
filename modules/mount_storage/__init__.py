"""Mount storages: file servers by the kernel, object stores by rclone, directories."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from pairun.module import (
    Context,
    Duration,
    Failure,
    Permanent,
    Result,
    Skip,
    StateModule,
    Verdict,
    arg,
    define,
    no_change,
    will_change,
)

from .fields import Value, shared_mount_points, storage_problems
from .kernel import mount_directory, mount_remote
from .mountpoint import Looker, MountPoint, require_free
from .rclone import RcloneMount
from .refusals import mount_refused
from .storage import Storage, named_storages, read_file, secret_values

_NAMED = 5
"""The maximum number of files that a message names as not written to a store."""


@define
class MountStorage(StateModule):
    """Mount storages, without a helper program of the image.

    A storage is a mapping with ``type``, ``path`` (the mount point) and optionally ``subdir`` (a
    directory in it, made if it is missing) and ``read_only``. Its other fields depend on its type:
    nfs (server, export, options), samba (server, share, username, password, domain,
    options), azurefile (account, key, share, server, options), azureblob (container, account, key
    or sas_url, endpoint), s3 (bucket, access_key, secret_key, endpoint, region, provider), hdfs
    (namenode, username, folder), rclone (settings of any remote, remote), local (source).
    """

    phases = ("runtime",)
    privileges = "root and CAP_SYS_ADMIN; for object stores /dev/fuse too"
    example = """\
mount_storage:
  storages:
    - {type: nfs, server: files.example.com, export: /data, path: /mnt/data}"""
    tools: ClassVar[tuple[str, ...]] = ("rclone", "fusermount")

    storages: list[dict[str, Value]] = arg("The storages, in any order.", factory=list)
    file: str | None = arg("A file with more storages, written by storage_config.", default=None)
    state: Literal["present", "absent"] = arg(
        "Whether the storages are mounted; mounts of anything else stay.", default="present"
    )
    user: str | None = arg("Replaces %USER.", default=None)
    job: str | None = arg("Replaces %JOB.", default=None)
    answer_within: Duration = arg(
        "The longest time in which a mounted storage must respond.", default=Duration(10.0)
    )

    def require(self) -> Iterator[str]:
        """Each storage is complete, and each mount point is unique."""
        for number, storage in enumerate(self.storages):
            yield from storage_problems(storage, f"'storages' {number + 1}")
        yield from shared_mount_points(s for s in self.storages if isinstance(s.get("path"), str))

    def probe(self, ctx: Context) -> tuple[MountPoint, ...]:
        """Check every mount point; mounts nothing if one of them is unusable.

        Raises:
            Skip: there is no storage.
            Permanent: a mount point is in use, not empty or not a directory.
            TimedOut: a mounted storage does not respond.
        """
        storages = self._all_storages(ctx)
        if not storages:
            raise Skip("no storage is given")
        looker = Looker(ctx, absent=self.state == "absent", answer_s=self.answer_within)
        points: list[MountPoint] = []
        for storage in storages:
            points.append(looker.look(storage, points))
        targets = [p.target for p in points]
        for target in targets:
            if targets.count(target) > 1:
                message = f"two storages at one mount point: {target}, by a link in its path"
                raise Permanent(message, fault="user")
        return tuple(points)

    def _all_storages(self, ctx: Context) -> list[Storage]:
        from_file = read_file(ctx, self.file) if self.file is not None else []
        if from_file is None and self.state == "present":
            message = f"{self.file} is missing: storage_config writes it"
            raise Permanent(message, fault="platform")
        storages = named_storages([*self.storages, *(from_file or ())], self.user, self.job)
        ctx.hide([value for storage in storages for value in secret_values(storage)])
        return storages

    def plan(self, state: tuple[MountPoint, ...]) -> Verdict:
        """Compare each mount point."""
        present = self.state == "present"
        changes = [p for p in state if p.mounted != present]
        if not changes:
            return no_change("all are mounted" if present else "none is mounted")
        return will_change(f"{'mount' if present else 'unmount'} {_names(changes)}")

    def apply(self, ctx: Context) -> Result:
        """Mount all or nothing, outer ones first; unmount in reverse order."""
        state = self.probe(ctx)
        if self.state == "absent":
            return _unmount(ctx, [p for p in reversed(state) if p.mounted])
        mounted: list[MountPoint] = []
        try:
            for point in state:
                if not point.mounted:
                    _mount(ctx, point)
                    mounted.append(point)
        except Failure:
            _unmount(ctx, list(reversed(mounted)))
            raise
        return Result(message=f"mounted {_names(mounted)}")


def _names(points: list[MountPoint]) -> str:
    return ", ".join(f"{p.storage} at {p.storage.path}" for p in points)


def _mount(ctx: Context, point: MountPoint) -> None:
    storage, target = point.storage, point.target
    if point.dead:
        ctx.unmount(target)
    # Check again: an outer storage that is mounted now may contain something there.
    require_free(ctx, storage, target)
    ctx.make_dir(target)
    if storage.by_rclone:
        store = RcloneMount(ctx, storage, target)
        try:
            store.mount()
        except Failure:
            store.forget(copies=False)
            raise
    elif storage.type == "local":
        mount_directory(ctx, storage, target)
    else:
        mount_remote(ctx, storage, target)


def _unmount(ctx: Context, points: list[MountPoint]) -> Result:
    unwritten: list[str] = []
    for point in points:
        storage = point.storage
        store = RcloneMount(ctx, storage, point.target) if storage.by_rclone else None
        dirty = store.wait_until_written() if store else []
        try:
            ctx.unmount(point.target)
        except OSError as e:
            raise mount_refused(ctx, storage, e) from e
        if store is not None:
            store.forget(copies=not dirty)
        unwritten += dirty
    message = f"unmounted {', '.join(p.storage.path for p in points)}"
    if unwritten:
        names = ", ".join(unwritten[:_NAMED]) + (" and more" if len(unwritten) > _NAMED else "")
        message += f"; not written to the store: {names}"
        ctx.log(message)
    return Result(message=message)

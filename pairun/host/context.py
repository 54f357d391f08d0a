"""A module's context on this machine: every effect is real."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

# Imported before the fork of an attempt, so that all attempts share its memory.
from pairun.base.folder import Folder
from pairun.base.machine import MACHINE
from pairun.base.refusals import REFUSALS
from pairun.host import commands, files
from pairun.host.failures import os_failures, removing
from pairun.host.worlds import read_only
from pairun.kube.events import Note
from pairun.module import (
    Completed,
    Context,
    Fetched,
    FetchedFile,
    FileStat,
    Gathering,
    Mount,
    Secret,
    Talk,
    TimedOut,
    Unpacked,
    reveal,
)
from pairun.volume.door import Door

if TYPE_CHECKING:
    from pairun.net.apiserver import ApiServer

PROGRESS_S = 5.0
"""The shortest interval between two progress reports, in seconds."""


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


class HostContext(Context):
    """This machine: every effect is real.

    Args:
        deadline: `time.monotonic` seconds at which the attempt is stopped, or None.
        emit_log: takes lines for people; standard output by default.
        emit_progress: takes progress reports; ignored by default.
        emit_hidden: takes texts to mask; ignored by default.
    """

    def __init__(
        self,
        env: Mapping[str, str],
        pai_dir: str,
        deadline: float | None = None,
        emit_log: Callable[[str], None] = _say,
        emit_progress: Callable[[dict[str, Any]], None] = lambda _: None,
        emit_hidden: Callable[[list[str]], None] = lambda _: None,
    ) -> None:
        super().__init__(env, pai_dir)
        self._deadline = deadline
        # A clock that is set during the attempt must neither end a wait nor prolong it.
        self._epoch = time.time() - time.monotonic()
        self._emit_log = emit_log
        self._emit_progress = emit_progress
        self._emit_hidden = emit_hidden
        self._progress: dict[str, Any] | None = None
        self._progress_at = time.monotonic()
        self._digests: dict[files.Identity, str] = {}
        self._api: ApiServer | None = None

    # An attempt that touches no file makes none: a forked child copies each page it writes.
    @functools.cached_property
    def _door(self) -> Door:
        return Door(self.pai_dir)

    def _folder(self, path: str) -> Folder:
        """What reads and changes files at a path; on the shared volume the door."""
        return self._door if path in self._door else MACHINE

    def stat(self, path: str) -> FileStat | None:
        with os_failures(f"look at {path}"):
            found = self._folder(path).stat(path)
        return None if found is None else files.facts(found)

    def read_file(self, path: str, max_bytes: int = 16 * 1024 * 1024) -> bytes | None:
        with os_failures(f"read {path}"), contextlib.suppress(*files.NOTHING_THERE):
            return self._folder(path).read(path, max_bytes)
        return None

    def digest(self, path: str) -> str | None:
        folder = self._folder(path)
        with (
            os_failures(f"read {path}"),
            contextlib.suppress(*files.NOTHING_THERE),
            folder.open(path) as file,
        ):
            return files.digest(file, self._digests)
        return None

    def list_dir(self, path: str) -> list[str] | None:
        with os_failures(f"list {path}"), contextlib.suppress(*files.NOTHING_THERE):
            return self._folder(path).names(path)
        return None

    def which(self, program: str) -> str | None:
        return shutil.which(program, path=self.env.get("PATH", os.defpath))

    def query(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str | Secret | None] | None = None,
        cwd: str | None = None,
        timeout_s: float | None = None,
    ) -> Completed:
        until = None if timeout_s is None else time.monotonic() + timeout_s

        def remaining() -> float | None:
            limits = (self.remaining_s(), None if until is None else until - time.monotonic())
            return min((x for x in limits if x is not None), default=None)

        return commands.run(
            argv, env=self._environment(env), remaining=remaining, cwd=cwd, capture=True
        )

    def _environment(self, more: Mapping[str, str | Secret | None] | None) -> dict[str, str]:
        """The task's environment with changes; None removes a variable."""
        full = {**self.env, **(more or {})}
        return {name: reveal(value) for name, value in full.items() if value is not None}

    def port_taken(self, port: int) -> str | None:
        from pairun.host.ports import port_taken

        return port_taken(port)

    def fetch(
        self,
        url: str,
        *,
        method: Literal["GET", "HEAD"] = "GET",
        headers: Mapping[str, str | Secret] | None = None,
        timeout_s: float = 10.0,
        max_bytes: int = 1024 * 1024,
    ) -> Fetched:
        # requests and ssl are heavy, and most attempts send no request.
        from pairun.net.session import fetch

        limit_s = self._bounded(timeout_s)
        return fetch(
            url, self.env, method=method, headers=headers, limit_s=limit_s, max_bytes=max_bytes
        )

    def ask_api(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        accept: str | None = None,
        timeout_s: float = 10.0,
        max_bytes: int = 1024 * 1024,
    ) -> bytes | None:
        return self._api_server().ask(
            path,
            query=query,
            accept=accept,
            timeout_s=self._bounded(timeout_s),
            max_bytes=max_bytes,
        )

    def _api_server(self) -> ApiServer:
        if self._api is None:
            from pairun.net.apiserver import ApiServer

            self._api = ApiServer.in_pod(self.env, REFUSALS)
        return self._api

    def connects(self, host: str, port: int, *, timeout_s: float = 1.0) -> bool:
        from pairun.net import boundedcall

        return boundedcall.accepts(host, port, self._bounded(timeout_s))

    def lookup(self, host: str, *, timeout_s: float = 10.0) -> str:
        from pairun.net import boundedcall

        return boundedcall.lookup(host, self._bounded(timeout_s))

    def mounts(self) -> list[Mount]:
        from pairun.host import mounts

        return mounts.mounts()

    def real_path(self, path: str, *, timeout_s: float = 10.0) -> str:
        from pairun.host import mounts

        return mounts.real_path(path, self._bounded(timeout_s))

    def free_bytes(self, path: str, *, timeout_s: float = 10.0) -> int:
        from pairun.host import mounts

        return mounts.free_bytes(path, self._bounded(timeout_s))

    def gather(self, roles: Mapping[str, int], log: Callable[[str], None]) -> Gathering | None:
        # Sockets, digests and a process: only the barrier needs them.
        from pairun.rendezvous.background import begin

        return begin(roles, self.env, self.pai_dir, log)

    def _bounded(self, seconds: float) -> float:
        left = self.remaining_s()
        return seconds if left is None else max(0.001, min(seconds, left))

    def hide(self, texts: Sequence[str | Secret]) -> None:
        # Earlier output may still contain the text; later output must not.
        sys.stdout.flush()
        if hidden := [plain for text in texts if (plain := reveal(text))]:
            self._emit_hidden(hidden)

    def remaining_s(self) -> float | None:
        return None if self._deadline is None else self._deadline - time.monotonic()

    def now(self) -> float:
        return self._epoch + time.monotonic()

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes | None = None,
        env: Mapping[str, str | Secret | None] | None = None,
        cwd: str | None = None,
        capture: bool = False,
        watch: Callable[[bytes], None] | None = None,
        pass_fds: Sequence[int] = (),
        until: Callable[[], bool] | None = None,
    ) -> Completed:
        # Flush our output before the command prints.
        sys.stdout.flush()
        return commands.run(
            argv,
            env=self._environment(env),
            remaining=self.remaining_s,
            stdin=stdin,
            cwd=cwd,
            capture=capture,
            watch=watch,
            pass_fds=pass_fds,
            until=until,
        )

    def post(
        self,
        url: str,
        data: bytes,
        *,
        headers: Mapping[str, str | Secret] | None = None,
        timeout_s: float = 10.0,
    ) -> Fetched:
        from pairun.net.session import fetch

        limit_s = self._bounded(timeout_s)
        return fetch(url, self.env, method="POST", headers=headers, limit_s=limit_s, data=data)

    def create_event(self, note: Note, *, key: str = "", timeout_s: float = 10.0) -> None:
        from pairun.net import podevents

        podevents.create_event(note, self.env, self._bounded(timeout_s), key)

    def start(self, argv: Sequence[str]) -> Talk:
        sys.stdout.flush()
        return commands.Conversation(argv, self._environment(None))

    def write_file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        with os_failures(f"write {path}"):
            self._folder(path).write(path, data, mode)

    def fetch_file(
        self,
        url: str | Secret,
        path: str,
        *,
        headers: Mapping[str, str | Secret] | None = None,
        mode: int = 0o644,
        sha256: str | None = None,
        max_bytes: int | None = None,
        stall_s: float = 60.0,
    ) -> FetchedFile:
        from pairun.host.download import Download

        with contextlib.ExitStack() as stack:
            with os_failures(f"write {path}"):
                folder, name = stack.enter_context(self._folder(path).holding(path))
            fetched = Download(
                ctx=self,
                url=reveal(url),
                folder=folder,
                name=name,
                headers=headers or {},
                mode=mode,
                sha256=sha256.lower() if sha256 else None,
                max_bytes=max_bytes,
                stall_s=stall_s,
            ).run()
            with contextlib.suppress(OSError):
                if found := folder.stat(name):
                    self._digests[files.identity_of(found)] = fetched.sha256
        return fetched

    def unpack(
        self,
        archive: str,
        directory: str,
        *,
        max_bytes: int,
        max_members: int,
        extra: Mapping[str, bytes] | None = None,
    ) -> Unpacked:
        from pairun.host import archives

        limits = archives.ArchiveLimits(max_bytes, max_members)
        with contextlib.ExitStack() as stack:
            with os_failures(f"unpack into {directory}"):
                folder, name = stack.enter_context(self._folder(directory).holding(directory))
            with os_failures(f"read {archive}"):
                file = stack.enter_context(self._folder(archive).open(archive))
            return archives.unpack(file, archive, folder, name, limits, extra or {})

    def set_mode(self, path: str, mode: int) -> None:
        with os_failures(f"set the mode of {path}"):
            self._folder(path).set_mode(path, mode)

    def make_dir(self, path: str, mode: int = 0o755) -> None:
        with os_failures(f"make the directory {path}"):
            self._folder(path).make_folder(path, mode)

    def rename(self, source: str, target: str) -> None:
        with os_failures(f"move {source} to {target}"):
            self._folder(source).rename(source, target, self._folder(target))

    def remove(self, path: str) -> None:
        with removing(path):
            self._folder(path).remove(path)

    def mount(
        self,
        source: str,
        target: str,
        kind: str | None,
        *,
        data: str | Secret | None = None,
        subdir: str = "",
        read_only: bool = False,
        timeout_s: float = 60.0,
    ) -> None:
        from pairun.host import mounts

        request = mounts.MountRequest(
            source=source, target=target, kind=kind, data=data, subdir=subdir, read_only=read_only
        )
        mounts.mount(request, self._door, self._bounded(timeout_s))

    def unmount(self, target: str, *, timeout_s: float = 5.0) -> None:
        from pairun.host import mounts

        mounts.unmount(target, self._door, self._bounded(timeout_s))

    def sleep(self, seconds: float) -> None:
        left = self.remaining_s()
        if left is not None and left < seconds:
            time.sleep(max(0.0, left))
            raise TimedOut("the time limit of this attempt expired")
        time.sleep(seconds)

    def log(self, line: str) -> None:
        self._emit_log(" ".join(line.splitlines()))

    def progress(self, done: int, total: int | None = None, file: str = "") -> None:
        self._progress = {"bytes": done, "total": total, "file": file}
        if time.monotonic() - self._progress_at >= PROGRESS_S:
            self.last_progress()

    def last_progress(self) -> None:
        """Emit the last progress report, if that has not happened yet."""
        if self._progress is not None:
            self._progress_at = time.monotonic()
            self._emit_progress(self._progress)
            self._progress = None


ProbeContext = read_only(HostContext, "ProbeContext")
"""The context of a review that probes this machine."""

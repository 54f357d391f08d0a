"""A module's only way to the world: every method, with one sentence of what it asks or changes."""

# `_reads` and `_changes` make every method abstract, which the checkers do not see.
# mypy: disable-error-code="empty-body"
# ruff: noqa: B024, B027

from __future__ import annotations

import abc
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

from pairun.kube.events import Note
from pairun.module.answers import (
    Completed,
    Fetched,
    FetchedFile,
    FileStat,
    Gathering,
    Mount,
    Talk,
    Unpacked,
)
from pairun.secrets.secret import Secret

NoneInReview = Literal["never", "below the volume", "always"]
_Method = TypeVar("_Method", bound=Callable[..., Any])


class Effect(NamedTuple):
    """What a method of `Context` does to the world.

    Attributes:
        changes: it changes the world; only ``apply`` may call it.
        sentence: what it asks or changes, with its arguments in braces.
        none_in_review: where it answers None in a review, because the Pod is still empty.
    """

    changes: bool
    sentence: str
    none_in_review: NoneInReview = "never"


def _reads(what: str, *, none_in_review: NoneInReview = "never") -> Callable[[_Method], _Method]:
    """Declare a method that reads; a review says "depends on ``what``"."""
    return _declare(Effect(False, what, none_in_review))


def _changes(what: str) -> Callable[[_Method], _Method]:
    """Declare a method that changes the world: it tries to ``what``."""
    return _declare(Effect(True, what))


def _declare(effect: Effect) -> Callable[[_Method], _Method]:
    def mark(method: _Method) -> _Method:
        vars(method)["effect"] = effect
        return abc.abstractmethod(method)

    return mark


class Context(abc.ABC):
    """A module's only way to the world.

    Each method is declared once. The worlds in which a module may not change anything are generated
    from these declarations.

    Args:
        env: the environment of the task: the process's, what earlier tasks exported, and the
            task's own ``environment``.
        pai_dir: the shared volume, ``/usr/local/pai`` in a Pod.
    """

    def __init__(self, env: Mapping[str, str], pai_dir: str) -> None:
        self.env = env
        self.pai_dir = pai_dir

    @classmethod
    def effects(cls) -> dict[str, Effect]:
        """The declared methods by name, in their order."""
        declared = vars(Context).items()
        return {n: m.effect for n, m in declared if isinstance(getattr(m, "effect", None), Effect)}

    # --- for `probe` and `check` ---

    @_reads("{path} in the container", none_in_review="below the volume")
    def stat(self, path: str) -> FileStat | None:
        """The properties of a path, or None if nothing exists there."""

    @_reads("{path} in the container", none_in_review="below the volume")
    def read_file(self, path: str, max_bytes: int = 16 * 1024 * 1024) -> bytes | None:
        """A file's content, or None if it does not exist.

        Raises:
            Permanent: it is larger than ``max_bytes``, or it is not a regular file.
        """

    @_reads("{path} in the container", none_in_review="below the volume")
    def digest(self, path: str) -> str | None:
        """The SHA-256 of a file of any size, in hexadecimal, or None if it does not exist.

        A file that `fetch_file` has written is not read again unless it has changed since.

        Raises:
            Permanent: it is not a regular file.
        """

    @_reads("{path} in the container", none_in_review="below the volume")
    def list_dir(self, path: str) -> list[str] | None:
        """The sorted names in a directory, or None if it does not exist."""

    @_reads("whether the image has {program}")
    def which(self, program: str) -> str | None:
        """The path of a program in the task's ``PATH``, or None."""

    @_reads("the output of {argv} in the container")
    def query(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str | Secret | None] | None = None,
        cwd: str | None = None,
        timeout_s: float | None = None,
    ) -> Completed:
        """Run a command that changes nothing, and capture its output.

        Args:
            argv: program and arguments; every user of the machine can read them.
            env: variables in addition to the task's environment; None removes one.
            cwd: the directory it runs in.
            timeout_s: limit in seconds; the attempt's remaining time also counts.

        Raises:
            Permanent: the program does not exist or cannot be executed.
            TimedOut: the time limit was exceeded.
        """

    @_reads("whether port {port} is free on the node")
    def port_taken(self, port: int) -> str | None:
        """What uses a TCP or UDP port of this host, as text; None when it is free."""

    @_reads("the answer of {url}")
    def fetch(
        self,
        url: str,
        *,
        method: Literal["GET", "HEAD"] = "GET",
        headers: Mapping[str, str | Secret] | None = None,
        timeout_s: float = 10.0,
        max_bytes: int = 1024 * 1024,
    ) -> Fetched:
        """Send one GET or HEAD request. A status raises nothing, a redirection is not followed.

        TLS is verified. ``HTTPS_PROXY``, ``HTTP_PROXY`` and ``NO_PROXY`` of the task's environment
        apply.

        Args:
            url: an http or https address; credentials go into ``headers``.
            method: ``HEAD`` returns status and headers only.
            headers: further headers; the value of a `Secret` is hidden everywhere.
            timeout_s: limit of the whole in seconds; the attempt's remaining time also counts.
            max_bytes: the largest body.

        Raises:
            Transient: the server did not answer, or the answer is not HTTP.
            TimedOut: the time limit was exceeded.
            Permanent: the server's certificate or the address is invalid, or the body is larger
                than ``max_bytes``.
        """

    @_reads("the answer of the cluster's API server")
    def ask_api(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        accept: str | None = None,
        timeout_s: float = 10.0,
        max_bytes: int = 1024 * 1024,
    ) -> bytes | None:
        """Read an object or a list from the cluster's API server, with this Pod's token.

        The connection is kept for the attempt's next request. If the server refuses the token, it
        is read from its file again.

        Args:
            path: of the resource, quoted.
            query: the parameters after the question mark.
            accept: the media type of the answer; JSON by default.
            timeout_s: limit of the whole in seconds; the attempt's remaining time also counts.
            max_bytes: the largest body.

        Returns:
            The body, or None if the object does not exist.

        Raises:
            Transient: the server did not answer, or answered with a status such as 429 or 5xx.
            TimedOut: the time limit was exceeded.
            Permanent: this Pod's token is refused or lacks a right, the server's certificate is
                invalid, there is no API server, or the body is larger than ``max_bytes``.
        """

    @_reads("whether {host} accepts connections on port {port}")
    def connects(self, host: str, port: int, *, timeout_s: float = 1.0) -> bool:
        """Whether a host accepts a TCP connection on a port within ``timeout_s``."""

    @_reads("the address of {host}")
    def lookup(self, host: str, *, timeout_s: float = 10.0) -> str:
        """The first address of a host, IPv4 before IPv6.

        Raises:
            NoSuchHost: the name does not exist.
            Transient: the name service failed.
            TimedOut: the name service did not answer in time.
        """

    @_reads("the mounts of the container")
    def mounts(self) -> list[Mount]:
        """All mounts in the order of mounting; of several at one path, the last is visible."""

    @_reads("{path} in the container")
    def real_path(self, path: str, *, timeout_s: float = 10.0) -> str:
        """A path without symbolic links, as the mount table has it.

        Raises:
            TimedOut: a file system on the path did not answer.
        """

    @_reads("whether the file system at {path} answers")
    def free_bytes(self, path: str, *, timeout_s: float = 10.0) -> int:
        """The free bytes of the file system at a path; also a test whether it answers.

        Raises:
            OSError: the file system refuses.
            TimedOut: the file system does not answer.
        """

    @_reads("the other instances of the job")
    def gather(self, roles: Mapping[str, int], log: Callable[[str], None]) -> Gathering | None:
        """Start to find the other instances of the job (`pairun.rendezvous`).

        Args:
            roles: role to number of instances, in the job's order; the first role leads.
            log: called with lines for people.

        Returns:
            None if it is not possible: no API server, no address.
        """

    @_reads("what is secret", none_in_review="always")
    def hide(self, texts: Sequence[str | Secret]) -> None:
        """Mask these texts from now on in every log, journal, report and message of the container.

        Call it with each secret that the plan does not hold: one that is read from a server or a
        file, or made. Values under 4 bytes are not masked.
        """

    @_reads("the time that this attempt has left", none_in_review="always")
    def remaining_s(self) -> float | None:
        """Seconds until this attempt is stopped, or None without a limit."""

    @_reads("the time of the run")
    def now(self) -> float:
        """Seconds since the epoch; if the clock is set during the attempt, they do not jump."""

    # --- for `apply`; `check` may call `log`, `progress`, `sleep`, `post` and `create_event`, too ---

    @_changes("run {argv}")
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
        """Run a command; its output goes to the task's output unless ``capture`` is set.

        A status other than zero raises nothing.

        Args:
            argv: program and arguments; every user of the machine can read them.
            stdin: its input; empty by default.
            env: variables in addition to the task's environment; None removes one.
            cwd: the directory it runs in.
            capture: capture its output and its errors.
            watch: with ``capture``, called with each piece of its errors when it arrives.
            pass_fds: open files that it inherits, under the same numbers.
            until: called twice a second; when it returns true, the command is ended (TERM, KILL).

        Raises:
            Permanent: the program does not exist or cannot be executed.
            TimedOut: the attempt's time limit was exceeded.
        """

    @_changes("send a request to {url}")
    def post(
        self,
        url: str,
        data: bytes,
        *,
        headers: Mapping[str, str | Secret] | None = None,
        timeout_s: float = 10.0,
    ) -> Fetched:
        """Send one POST request; otherwise as `fetch`.

        Args:
            url: an http or https address; credentials go into ``headers``.
            data: the body; set ``Content-Type`` in the headers.
            headers: further headers; the value of a `Secret` is hidden everywhere.
            timeout_s: limit of the whole in seconds; the attempt's remaining time also counts.

        Raises:
            Failure: as `fetch`.
        """

    @_changes("create an Event")
    def create_event(self, note: Note, *, key: str = "", timeout_s: float = 10.0) -> None:
        """Create an Event about this Pod, with its token.

        Args:
            note: its content, without secrets; the message is cut at 1024 bytes.
            key: Events with equal keys are one Event; by default those with equal content.
            timeout_s: limit of the whole in seconds; the attempt's remaining time also counts.

        Raises:
            Failure: as `ask_api`; the name or the namespace of this Pod is unknown.
        """

    @_changes("start {argv}")
    def start(self, argv: Sequence[str]) -> Talk:
        """Start a command that runs beside the module; it ends with the attempt at the latest.

        Args:
            argv: program and arguments; every user of the machine can read them.

        Raises:
            Permanent: the program does not exist or cannot be executed.
        """

    @_changes("write {path}")
    def write_file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Replace a file atomically: a reader sees the old or the new content, never half."""

    @_changes("download {path}")
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
        """Download a file: it appears complete and with its mode, or not at all.

        The bytes are kept beside the file until it is complete. If the connection breaks, a failure
        is raised. The next call resumes there if the server proves that the content is the same
        (RFC 9110, 13.1.5 and 14), else it starts from the beginning.

        Redirections are followed; ``headers`` are sent to the first server only. TLS and proxies
        are as in `fetch`. The bytes so far are reported as `progress`.

        Args:
            url: an http or https address; of a `Secret`, only the host is shown.
            path: the file; it is replaced, and its directory must exist.
            headers: further headers; the value of a `Secret` is hidden everywhere.
            mode: the file's permissions.
            sha256: the SHA-256 that the content must have, in hexadecimal.
            max_bytes: the largest body.
            stall_s: the longest time in seconds without a byte; the attempt's time limits the whole.

        Raises:
            Transient: no answer, a broken connection, 408, 425, 429, 5xx, a full disk.
            TimedOut: no byte for ``stall_s``, or the attempt's time limit was exceeded.
            Conflict: another process is writing the same file.
            Permanent: any other status, a wrong SHA-256, a body that is too large, or a permanent
                failure of `fetch`.
        """

    @_changes("unpack {archive}")
    def unpack(
        self,
        archive: str,
        directory: str,
        *,
        max_bytes: int,
        max_members: int,
        extra: Mapping[str, bytes] | None = None,
    ) -> Unpacked:
        """Unpack a tar or zip archive: the directory appears complete, or not at all.

        Members are directories, files, and links that stay inside. They belong to this process,
        only their owner may write to them, and set-uid, set-gid and sticky bits are removed.

        Args:
            archive: a zip file, or a tar file, plain or compressed with gzip, bzip2 or xz.
            directory: the target; one that exists is replaced.
            max_bytes: the limit of all files together.
            max_members: the limit of members.
            extra: further files in the directory: name to content.

        Raises:
            Permanent: a missing archive, a member that leads outside, a device, a duplicate name,
                or a limit that is exceeded.
            Transient: a full disk.
        """

    @_changes("set the mode of {path}")
    def set_mode(self, path: str, mode: int) -> None:
        """Set the permissions of a file or directory; a link is not followed."""

    @_changes("create the directory {path}")
    def make_dir(self, path: str, mode: int = 0o755) -> None:
        """Make a directory and its parents; one that exists is not changed."""

    @_changes("move {source}")
    def rename(self, source: str, target: str) -> None:
        """Move a path within one file system, atomically; the target is replaced."""

    @_changes("remove {path}")
    def remove(self, path: str) -> None:
        """Remove a path and all below it; mount points stay, links are not followed."""

    @_changes("mount {target}")
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
        """Mount a file system, completely or not at all.

        Source: mount(2), without a helper program.

        Args:
            source: what to mount, as the mount table will show it.
            target: a directory.
            kind: the file system's name; None makes a bind mount of the directory ``source``.
            data: options of the file system; only the kernel sees them.
            subdir: the directory in it to mount; made with mode 0777 if it is missing.
            read_only: whether nothing may be written.
            timeout_s: limit of the whole in seconds; the attempt's remaining time also counts.

        Raises:
            OSError: the kernel or the server refuses; its ``filename`` is ``subdir`` if that is the
                reason.
            Permanent: the options are longer than the kernel accepts.
            TimedOut: the server did not answer in time.
        """

    @_changes("unmount {target}")
    def unmount(self, target: str, *, timeout_s: float = 5.0) -> None:
        """Unmount; a file system that is in use or does not answer is detached (MNT_DETACH).

        Raises:
            OSError: the kernel refuses.
        """

    @_changes("wait")
    def sleep(self, seconds: float) -> None:
        """Wait.

        Raises:
            TimedOut: the attempt's time limit is exceeded before that.
        """

    @_changes("write to the log")
    def log(self, line: str) -> None:
        """Write one line for people to the task's log."""

    @_changes("report progress")
    def progress(self, done: int, total: int | None = None, file: str = "") -> None:
        """Report how many bytes are done, as often as you like.

        At most one report every few seconds is recorded, and the last one when the attempt ends.

        Args:
            done: bytes so far.
            total: bytes in total, if known.
            file: the file's name.
        """


def differing_files(ctx: Context, folder: str, files: Mapping[str, tuple[bytes, int]]) -> list[str]:
    """The names of files that are missing, or differ in content or mode.

    Args:
        folder: the folder of the names.
        files: name to the content and the mode that a file must have.
    """

    def differs(path: str, data: bytes, mode: int) -> bool:
        stat = ctx.stat(path)
        if stat is None or stat.kind != "file" or (stat.mode, stat.size) != (mode, len(data)):
            return True
        return ctx.read_file(path, len(data)) != data

    return [name for name, file in files.items() if differs(os.path.join(folder, name), *file)]

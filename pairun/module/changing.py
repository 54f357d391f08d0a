"""The methods of the context that change the world."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence

from pairun.kube.events import Note
from pairun.module.answers import Completed, Fetched, FetchedFile, Talk, Unpacked
from pairun.module.effects import changes
from pairun.secrets.secret import Secret


class Changing(abc.ABC):
    """The methods of `Context` for ``apply``.

    ``check`` may call `log`, `progress`, `sleep`, `post` and `create_event`, too.
    """

    @changes("run {argv}")
    @abc.abstractmethod
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

    @changes("send a request to {url}")
    @abc.abstractmethod
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

    @changes("create an Event")
    @abc.abstractmethod
    def create_event(self, note: Note, *, key: str = "", timeout_s: float = 10.0) -> None:
        """Create an Event about this Pod, with its token.

        Args:
            note: its content, without secrets; the message is cut at 1024 bytes.
            key: Events with equal keys are one Event; by default those with equal content.
            timeout_s: limit of the whole in seconds; the attempt's remaining time also counts.

        Raises:
            Failure: as `ask_api`; the name or the namespace of this Pod is unknown.
        """

    @changes("start {argv}")
    @abc.abstractmethod
    def start(self, argv: Sequence[str]) -> Talk:
        """Start a command that runs beside the module; it ends with the attempt at the latest.

        Args:
            argv: program and arguments; every user of the machine can read them.

        Raises:
            Permanent: the program does not exist or cannot be executed.
        """

    @changes("write {path}")
    @abc.abstractmethod
    def write_file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Replace a file atomically: a reader sees the old or the new content, never half."""

    @changes("download {path}")
    @abc.abstractmethod
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

    @changes("unpack {archive}")
    @abc.abstractmethod
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

    @changes("set the mode of {path}")
    @abc.abstractmethod
    def set_mode(self, path: str, mode: int) -> None:
        """Set the permissions of a file or directory; a link is not followed."""

    @changes("create the directory {path}")
    @abc.abstractmethod
    def make_dir(self, path: str, mode: int = 0o755) -> None:
        """Make a directory and its parents; one that exists is not changed."""

    @changes("move {source}")
    @abc.abstractmethod
    def rename(self, source: str, target: str) -> None:
        """Move a path within one file system, atomically; the target is replaced."""

    @changes("remove {path}")
    @abc.abstractmethod
    def remove(self, path: str) -> None:
        """Remove a path and all below it; mount points stay, links are not followed."""

    @changes("mount {target}")
    @abc.abstractmethod
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

    @changes("unmount {target}")
    @abc.abstractmethod
    def unmount(self, target: str, *, timeout_s: float = 5.0) -> None:
        """Unmount; a file system that is in use or does not answer is detached (MNT_DETACH).

        Raises:
            OSError: the kernel refuses.
        """

    @changes("wait")
    @abc.abstractmethod
    def sleep(self, seconds: float) -> None:
        """Wait.

        Raises:
            TimedOut: the attempt's time limit is exceeded before that.
        """

    @changes("write to the log")
    @abc.abstractmethod
    def log(self, line: str) -> None:
        """Write one line for people to the task's log."""

    @changes("report progress")
    @abc.abstractmethod
    def progress(self, done: int, total: int | None = None, file: str = "") -> None:
        """Report how many bytes are done, as often as you like.

        At most one report every few seconds is recorded, and the last one when the attempt ends.

        Args:
            done: bytes so far.
            total: bytes in total, if known.
            file: the file's name.
        """

"""Everything that a module's author imports.

A module is a file or a folder with one class: a frozen attrs class of typed, documented arguments.
A *state* module has ``probe`` (reads the world), ``plan`` (a pure comparison) and ``apply`` (changes
the world). A *check* module has only ``check``. Every effect goes through the `Context`: it bounds
the time, hides secrets, writes the journal, and a test replaces it.

Example::

    from pairun.module import Context, StateModule, Verdict, arg, define, no_change, will_change

    @define
    class MakeDir(StateModule):
        \"\"\"Make sure that a directory exists.\"\"\"

        example = "make_dir: {path: /tmp/x}"

        path: str = arg("The directory.")

        def probe(self, ctx: Context) -> bool:
            return ctx.stat(self.path) is not None

        def plan(self, state: bool) -> Verdict:
            return no_change("it exists") if state else will_change("make it")

        def apply(self, ctx: Context) -> None:
            ctx.make_dir(self.path)
"""

from __future__ import annotations

import abc
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import (
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    NewType,
    Protocol,
    TypeVar,
    dataclass_transform,
)

import attrs

from pairun.base.durations import Duration, format_duration, parse_duration
from pairun.base.gpureport import GpuReportElement, parse_gpu_report, uncorrectable_errors
from pairun.base.retryafter import is_worth_a_retry, retry_after_s
from pairun.base.sizes import format_size
from pairun.kube.pods import init_succeeded, why_missing
from pairun.kube.ports import PORT_ANNOTATION, PortPlan, port_annotation
from pairun.kube.statuses import task_statuses
from pairun.secrets.secret import Secret, reveal

__all__ = (  # noqa: RUF022 - by subject
    # the classes
    "CheckModule", "Context", "Module", "StateModule", "arg", "define",
    # types of arguments
    "Duration", "Mode", "Secret", "reveal",
    # verdicts and results
    "Result", "Verdict", "no_change", "unknown", "will_change",
    # failures
    "Conflict", "Failure", "FailureKind", "Fault", "Permanent", "Skip", "TimedOut", "Transient",
    "UnknownUntilRun",
    # what the context returns
    "Completed", "Fetched", "FetchedFile", "FileStat", "Gathering", "Mount", "Peer", "Talk",
    "Unpacked",
    # readers and writers
    "GpuReportElement", "PORT_ANNOTATION", "PortPlan", "format_duration", "format_size",
    "init_succeeded", "is_worth_a_retry", "parse_duration", "parse_gpu_report", "port_annotation",
    "retry_after_s", "task_statuses", "uncorrectable_errors", "why_missing",
)  # fmt: skip
"""What a module's author may import; docs/modules.md documents each name."""

FailureKind = Literal["transient", "timeout", "conflict", "permanent", "internal"]
Fault = Literal["user", "platform", "unknown"]
Phase = Literal["init", "runtime"]

FAILURE_KINDS: tuple[FailureKind, ...] = typing.get_args(FailureKind)

Mode = NewType("Mode", int)
"""File permission bits; written in YAML as quoted octal text (``'0644'``)."""


# --- failures ----------------------------------------------------------------------------------


class Failure(Exception):
    """A failure that a module expects. Raise one of the subclasses.

    Args:
        message: what happened, in one sentence.
        fault: whose fault it is.
        hint: what to do about it.
        retry_after_s: the seconds that a server asks to wait; the next attempt starts no earlier.
    """

    kind: ClassVar[FailureKind] = "internal"

    def __init__(
        self,
        message: str,
        *,
        fault: Fault = "unknown",
        hint: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.fault: Fault = fault
        self.hint = hint
        self.retry_after_s = retry_after_s


class Transient(Failure):
    """A retry may succeed: a broken network, 429, 5xx."""

    kind = "transient"


class TimedOut(Failure):
    """The time limit was exceeded."""

    kind = "timeout"


class Conflict(Failure):
    """Something is in use here, and may be free on another node: a port, a lock."""

    kind = "conflict"


class Permanent(Failure):
    """A retry fails again: 401, 403, 404, invalid input."""

    kind = "permanent"


class Skip(Exception):
    """There is nothing to do; the task is skipped, and people read the reason."""

    def __init__(self, because: str) -> None:
        super().__init__(because)
        self.because = because


class UnknownUntilRun(Exception):
    """A module asked in a review for something that is unknown until the run."""

    def __init__(self, because: str) -> None:
        super().__init__(because)
        self.because = because


# --- verdicts and results ----------------------------------------------------------------------


class Verdict(NamedTuple):
    """What a task would do: ``no_change``, ``will_change``, ``unknown`` or ``check``."""

    kind: Literal["no_change", "will_change", "unknown", "check"]
    because: str
    before: str | None = None
    after: str | None = None


def no_change(because: str) -> Verdict:
    """The world already is as the arguments say."""
    return Verdict("no_change", because)


def will_change(what: str, before: str | None = None, after: str | None = None) -> Verdict:
    """``apply`` will change something: what, and optionally its value before and after."""
    return Verdict("will_change", what, before, after)


def unknown(because: str) -> Verdict:
    """Unknown until the run."""
    return Verdict("unknown", because)


@attrs.frozen(kw_only=True)
class Result:
    """What ``apply`` or ``check`` returns.

    Attributes:
        values: what ``results.<id>.values`` holds for later tasks; plain data.
        environment: variables for every later task and the user's command; None removes one.
        message: one line for people.
    """

    values: Mapping[str, Any] = attrs.Factory(dict)
    environment: Mapping[str, str | None] = attrs.Factory(dict)
    message: str = ""


class FileStat(NamedTuple):
    """The properties of a path; a symbolic link is not followed.

    Attributes:
        kind: what it is.
        mode: its permission bits.
        size: its bytes.
        uid: its owner.
        gid: its group.
    """

    kind: Literal["file", "directory", "link", "other"]
    mode: int
    size: int
    uid: int
    gid: int


class Mount(NamedTuple):
    """A line of the mount table.

    Attributes:
        target: where it is mounted.
        source: what is mounted.
        root: the directory of the file system that is mounted; ``/`` for the whole.
        kind: the file system's name.
        read_only: whether nothing may be written.
    """

    target: str
    source: str
    root: str
    kind: str
    read_only: bool


class Completed(NamedTuple):
    """A command that has ended.

    Attributes:
        code: its exit status, or -n when signal n ended it.
        stdout: its output, where it was captured.
        stderr: its errors, where they were captured.
    """

    code: int
    stdout: bytes
    stderr: bytes


class Fetched(NamedTuple):
    """An answer over HTTP.

    Attributes:
        status: the status code.
        headers: lower-case name to every value.
        body: the body.
    """

    status: int
    headers: Mapping[str, tuple[str, ...]]
    body: bytes

    def header(self, name: str) -> str | None:
        """A header's values joined by commas (RFC 9110, 5.2), or None if it is missing."""
        values = self.headers.get(name.lower())
        return ", ".join(values) if values else None


class FetchedFile(NamedTuple):
    """A download that is complete.

    Attributes:
        size: its bytes.
        sha256: of its content, in hexadecimal.
        resumed_at: the bytes that an earlier attempt had downloaded.
    """

    size: int
    sha256: str
    resumed_at: int


class Unpacked(NamedTuple):
    """An archive that is unpacked.

    Attributes:
        members: how many it has.
        size: the bytes of its files.
    """

    members: int
    size: int


@attrs.frozen
class Peer:
    """An instance of the job and its Pod, as it registered with the job's leader."""

    role: str
    index: int
    pod_uid: str
    pod_ip: str
    host_ip: str
    pod_name: str


class Gathering(Protocol):
    """The instances of a job find each other, in the background.

    Attributes:
        peers: all instances, this one included, once all have registered. None before, and if they
            cannot prove who they are.
        complete: all have registered. Without proof, the module asks the platform.
        connected: the leader, or an instance that relays for it, is reached.
        over: why the instances cannot find each other; empty while they may.
    """

    peers: Sequence[Peer] | None
    complete: bool
    connected: bool
    over: str

    @property
    def ports(self) -> tuple[int, int] | None:
        """The half-open range of the job's ports, from the leader's Pod, or None."""

    def wait(self, seconds: float) -> None:
        """Wait until one of the attributes changes, at most so long."""

    def close(self) -> None:
        """Stop; the other instances count this one as registered."""


class Talk(Protocol):
    """A command that runs beside the module."""

    def take(self) -> bytes:
        """Its output and errors since the last call; does not wait."""

    def say(self, data: bytes) -> None:
        """Write a few bytes to its input; what it does not read at once is lost."""

    def code(self) -> int | None:
        """Its exit status, or None while it runs; -n when signal n ended it."""

    def end(self) -> None:
        """End it if it runs."""


# --- the context -------------------------------------------------------------------------------


@attrs.frozen
class Effect:
    """What a method of `Context` does to the world.

    Attributes:
        changes: it changes the world; only ``apply`` may call it.
        sentence: what it asks or changes, with its arguments in braces.
        none_in_review: where it answers None in a review, because the Pod is still empty.
    """

    changes: bool
    sentence: str
    none_in_review: NoneInReview = "never"


NoneInReview = Literal["never", "below the volume", "always"]
_Method = TypeVar("_Method", bound=Callable[..., Any])


def reads(what: str, *, none_in_review: NoneInReview = "never") -> Callable[[_Method], _Method]:
    """Declare a method of `Context` that reads; a review says "depends on ``what``"."""
    return _declare(Effect(False, what, none_in_review))


def changes(what: str) -> Callable[[_Method], _Method]:
    """Declare a method of `Context` that changes the world: it tries to ``what``."""
    return _declare(Effect(True, what))


def _declare(effect: Effect) -> Callable[[_Method], _Method]:
    def mark(method: _Method) -> _Method:
        vars(method)["effect"] = effect
        return method

    return mark


class Context(abc.ABC):
    """A module's only way to the world.

    Each method is declared here once, with the one sentence that says what it asks or changes. The
    worlds in which a module may not change anything are generated from these declarations.

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
        methods = vars(Context).items()
        return {
            name: m.effect for name, m in methods if isinstance(getattr(m, "effect", None), Effect)
        }

    # reading: allowed in `probe` and `check`

    @reads("{path} in the container", none_in_review="below the volume")
    @abc.abstractmethod
    def stat(self, path: str) -> FileStat | None:
        """The properties of a path, or None if nothing exists there."""

    @reads("{path} in the container", none_in_review="below the volume")
    @abc.abstractmethod
    def read_file(self, path: str, max_bytes: int = 16 * 1024 * 1024) -> bytes | None:
        """A file's content, or None if it does not exist.

        Raises:
            Permanent: it is larger than ``max_bytes``, or it is not a regular file.
        """

    @reads("{path} in the container", none_in_review="below the volume")
    @abc.abstractmethod
    def digest(self, path: str) -> str | None:
        """The SHA-256 of a file of any size, in hexadecimal, or None if it does not exist.

        A file that `fetch_file` has written is not read again unless it has changed since.

        Raises:
            Permanent: it is not a regular file.
        """

    @reads("{path} in the container", none_in_review="below the volume")
    @abc.abstractmethod
    def list_dir(self, path: str) -> list[str] | None:
        """The sorted names in a directory, or None if it does not exist."""

    @reads("whether the image has {program}")
    @abc.abstractmethod
    def which(self, program: str) -> str | None:
        """The path of a program in the task's ``PATH``, or None."""

    @reads("the output of {argv} in the container")
    @abc.abstractmethod
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

    @reads("whether port {port} is free on the node")
    @abc.abstractmethod
    def port_taken(self, port: int) -> str | None:
        """What uses a TCP or UDP port of this host, as text; None when it is free."""

    @reads("the answer of {url}")
    @abc.abstractmethod
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

    @reads("the answer of the cluster's API server")
    @abc.abstractmethod
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

    @reads("whether {host} accepts connections on port {port}")
    @abc.abstractmethod
    def connects(self, host: str, port: int, *, timeout_s: float = 1.0) -> bool:
        """Whether a host accepts a TCP connection on a port within ``timeout_s``."""

    @reads("the address of {host}")
    @abc.abstractmethod
    def lookup(self, host: str, *, timeout_s: float = 10.0) -> str:
        """The first address of a host, IPv4 before IPv6.

        Raises:
            Permanent: the name does not exist.
            Transient: the name service failed.
            TimedOut: the name service did not answer in time.
        """

    @reads("the mounts of the container")
    @abc.abstractmethod
    def mounts(self) -> list[Mount]:
        """All mounts in the order of mounting; of several at one path, the last is visible."""

    @reads("{path} in the container")
    @abc.abstractmethod
    def real_path(self, path: str, *, timeout_s: float = 10.0) -> str:
        """A path without symbolic links, as the mount table has it.

        Raises:
            TimedOut: a file system on the path did not answer.
        """

    @reads("whether the file system at {path} answers")
    @abc.abstractmethod
    def free_bytes(self, path: str, *, timeout_s: float = 10.0) -> int:
        """The free bytes of the file system at a path; also a test whether it answers.

        Raises:
            OSError: the file system refuses.
            TimedOut: the file system does not answer.
        """

    @reads("the other instances of the job")
    @abc.abstractmethod
    def gather(self, roles: Mapping[str, int], log: Callable[[str], None]) -> Gathering | None:
        """Start to find the other instances of the job (`pairun.rendezvous`).

        Args:
            roles: role to number of instances, in the job's order; the first role leads.
            log: called with lines for people.

        Returns:
            None if it is not possible: no API server, no address.
        """

    @reads("the time that this attempt has left", none_in_review="always")
    @abc.abstractmethod
    def remaining_s(self) -> float | None:
        """Seconds until this attempt is stopped, or None without a limit."""

    @reads("the time of the run")
    @abc.abstractmethod
    def now(self) -> float:
        """Seconds since the epoch."""

    # changing: allowed in `apply`; `log`, `progress`, `sleep`, `post`, `post_api` also in `check`

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

    @changes("create an object in the cluster")
    @abc.abstractmethod
    def post_api(self, path: str, data: bytes, *, timeout_s: float = 10.0) -> bytes | None:
        """Create an object in the cluster, with this Pod's token.

        Args:
            path: of the collection, quoted.
            data: the object as JSON; if it has a name, a second call creates no second one.
            timeout_s: limit of the whole in seconds; the attempt's remaining time also counts.

        Returns:
            The object as the server created it; None if one of that name exists.

        Raises:
            Failure: as `ask_api`.
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


# --- the classes -------------------------------------------------------------------------------


class Module:
    """Common to both kinds; see `StateModule` and `CheckModule`.

    Attributes:
        phases: where the module may run.
        privileges: what it needs, as text.
        example: a task's module entry in YAML, as ``pairun doc`` prints it and a test runs it.
        tools: programs of pairun's image that init copies to ``tools`` on the shared volume for the
            runtime phase. If the image lacks one, the module must say so.
        not_yet: what this version does not support yet; empty for a module that works.
    """

    phases: ClassVar[tuple[Phase, ...]] = ("init", "runtime")
    privileges: ClassVar[str] = "none"
    example: ClassVar[str] = ""
    tools: ClassVar[tuple[str, ...]] = ()
    not_yet: ClassVar[str] = ""

    @property
    def harmless(self) -> frozenset[FailureKind]:
        """The kinds of failure that do no harm; none by default.

        The executor retries them as any other. When the last attempt fails with such a kind, its
        own timeouts and deadlines included, the task is ignored, whatever its ``failure_policy``.
        A module may set a class attribute, or define a property that depends on its arguments.
        """
        return frozenset()

    def require(self) -> Iterator[str]:
        """Yield a sentence for each combination of arguments that is invalid."""
        yield from ()


class StateModule(Module):
    """Brings the world into a state; a second run finds nothing to do.

    Attributes:
        verify: after `apply`, run `probe` and `plan` again and require "no change". Set it to False
            in a module that verifies while it writes, or that cannot promise this (a command).
    """

    verify: ClassVar[bool] = True

    def probe(self, ctx: Context) -> Any:
        """Read the world; change nothing."""
        raise NotImplementedError

    def plan(self, state: Any) -> Verdict:
        """Compare: pure, no context, no clock."""
        raise NotImplementedError

    def apply(self, ctx: Context) -> Result | None:
        """Change the world."""
        raise NotImplementedError


class CheckModule(Module):
    """Checks, waits or sends a request; changes nothing that a later task sees."""

    def check(self, ctx: Context) -> Result | None:
        """Return if the check passes; raise a `Failure` if not."""
        raise NotImplementedError


_T = TypeVar("_T")
_REQUIRED: Any = attrs.NOTHING


def arg(
    doc: str,
    *,
    default: Any = _REQUIRED,
    factory: Callable[[], Any] | None = None,
    replaced_by: Literal["retries"] | None = None,
) -> Any:
    """An argument of a module: one line of documentation, and a default unless it is required.

    Args:
        doc: the line.
        default: its value where nobody sets one.
        factory: makes the default.
        replaced_by: the task keyword that does the same now. The argument counted attempts: it
            still sets the keyword, with a warning, and never reaches the module.
    """
    metadata = {"doc": doc, "replaced_by": replaced_by}
    if factory is not None:
        return attrs.field(factory=factory, metadata=metadata)
    return attrs.field(default=default, metadata=metadata)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(arg, attrs.field))
def define(cls: type[_T]) -> type[_T]:
    """Make a class of annotated `arg` fields a frozen, keyword-only record."""
    return attrs.frozen(kw_only=True, slots=False)(cls)

"""All that a module's author imports.

A module is a file or a folder with one class: a frozen attrs class of typed, documented arguments. A *state*
module has ``probe`` (reads the world), ``plan`` (a pure comparison) and ``apply`` (changes the
world); a *check* module has only ``check``. Every effect goes through the `Context`, which is where
deadlines, redaction, the journal and test fakes live.

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
    """A failure that a module foresaw. Raise one of the subclasses.

    Args:
        message: one sentence.
        fault: whose it is.
        hint: what to do about it.
        retry_after_s: seconds the other side asked us to wait; the least that is waited.
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
    """May heal by itself: a broken network, 429, 5xx."""

    kind = "transient"


class TimedOut(Failure):
    """Took longer than it may."""

    kind = "timeout"


class Conflict(Failure):
    """Taken here, free elsewhere: a port, a lock."""

    kind = "conflict"


class Permanent(Failure):
    """Will not heal: 401, 403, 404, bad input."""

    kind = "permanent"


class Skip(Exception):
    """There is nothing to do here, for a reason that people should read."""

    def __init__(self, because: str) -> None:
        super().__init__(because)
        self.because = because


class UnknownUntilRun(Exception):
    """A review asked for something that only the run can tell."""

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
    """Everything is as asked."""
    return Verdict("no_change", because)


def will_change(what: str, before: str | None = None, after: str | None = None) -> Verdict:
    """Something will be changed: what, and optionally from what to what."""
    return Verdict("will_change", what, before, after)


def unknown(because: str) -> Verdict:
    """Only the run can tell."""
    return Verdict("unknown", because)


@attrs.frozen(kw_only=True)
class Result:
    """What a module hands on.

    Attributes:
        values: what ``results.<id>.values`` holds for later tasks; plain data.
        environment: variables for every later task and the user's command; None removes one.
        message: one line for people.
    """

    values: Mapping[str, Any] = attrs.Factory(dict)
    environment: Mapping[str, str | None] = attrs.Factory(dict)
    message: str = ""


class FileStat(NamedTuple):
    """What `Context.stat` tells; a symbolic link is not followed."""

    kind: Literal["file", "directory", "link", "other"]
    mode: int
    size: int
    uid: int
    gid: int


class Mount(NamedTuple):
    """A line of the mount table.

    ``root`` is the directory of the file system that is mounted: ``/`` for all of it.
    """

    target: str
    source: str
    root: str
    kind: str
    read_only: bool


class Completed(NamedTuple):
    """A command that ended: ``code`` is its exit status, or -n when signal n ended it."""

    code: int
    stdout: bytes
    stderr: bytes


class Fetched(NamedTuple):
    """An answer over HTTP: ``headers`` holds every value of a header under its lower-case name."""

    status: int
    headers: Mapping[str, tuple[str, ...]]
    body: bytes

    def header(self, name: str) -> str | None:
        """A header's values, joined as RFC 9110 (5.2) has it, or None where there are none."""
        values = self.headers.get(name.lower())
        return ", ".join(values) if values else None


class FetchedFile(NamedTuple):
    """A body that has become a file: ``resumed_at`` bytes of it were there from an earlier try."""

    size: int
    sha256: str
    resumed_at: int


class Unpacked(NamedTuple):
    """An archive that has become a directory: how many members, and the bytes of its files."""

    members: int
    size: int


@attrs.frozen
class Peer:
    """Another instance of the job, as it told its leader: role, number, and its Pod."""

    role: str
    index: int
    pod_uid: str
    pod_ip: str
    host_ip: str
    pod_name: str


class Gathering(Protocol):
    """The instances of a job on their way to each other, beside whatever else is done.

    Attributes:
        peers: all of them, this one included, once all are there; None before, and where they
            cannot prove themselves.
        complete: all are there; without proof a reason to look at what the platform says.
        connected: the leader, or somebody who speaks for it, is reached and will tell.
        over: why nothing will come of it; empty while something may.
    """

    peers: Sequence[Peer] | None
    complete: bool
    connected: bool
    over: str

    @property
    def ports(self) -> tuple[int, int] | None:
        """The half-open range of the job's ports as the leader's Pod has it, or None."""

    def wait(self, seconds: float) -> None:
        """Wait at most so long, and no longer than until one of these changes."""

    def close(self) -> None:
        """Leave: the platform has told what was to be known. The others count this one as here."""


class Talk(Protocol):
    """A command that runs beside the module."""

    def take(self) -> bytes:
        """What it has printed since the last time, output and errors; waits for nothing."""

    def say(self, data: bytes) -> None:
        """Write to its input, as far as it reads: a few bytes at a time."""

    def code(self) -> int | None:
        """Its exit status, or None while it runs; -n when signal n ended it."""

    def end(self) -> None:
        """End it, if it runs."""


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
        """What stands at a path, or None."""

    @reads("{path} in the container", none_in_review="below the volume")
    @abc.abstractmethod
    def read_file(self, path: str, max_bytes: int = 16 * 1024 * 1024) -> bytes | None:
        """A file's content, or None where there is none.

        Raises:
            Permanent: it is larger than ``max_bytes``, or not a regular file.
        """

    @reads("{path} in the container", none_in_review="below the volume")
    @abc.abstractmethod
    def digest(self, path: str) -> str | None:
        """The SHA-256 of a file of any size, in hexadecimal, or None where there is no file.

        What `fetch_file` has just written is not read again while nobody touched it.

        Raises:
            Permanent: it is not a regular file.
        """

    @reads("{path} in the container", none_in_review="below the volume")
    @abc.abstractmethod
    def list_dir(self, path: str) -> list[str] | None:
        """The sorted names in a directory, or None where there is none."""

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
        """Run a command that changes nothing, and take its output.

        Args:
            argv: program and arguments; everybody on the machine can read them.
            env: variables in addition to the task's environment; None removes one.
            cwd: the directory it runs in.
            timeout_s: how long it may take; what is left of the attempt's time bounds it too.

        Raises:
            Permanent: the program does not exist or cannot be executed.
            TimedOut: the time was up.
        """

    @reads("whether port {port} is free on the node")
    @abc.abstractmethod
    def port_taken(self, port: int) -> str | None:
        """Who or what holds a TCP or UDP port of this host, in words; None when it is free."""

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
        """Ask a server for something, once. Never raises for a status, follows no redirection.

        TLS is verified; ``HTTPS_PROXY``, ``HTTP_PROXY`` and ``NO_PROXY`` count.

        Args:
            url: an http or https address; credentials go into ``headers``.
            method: ``HEAD`` asks for status and headers only.
            headers: further headers; a `Secret` is shown nowhere.
            timeout_s: seconds for everything; what is left of the attempt's time bounds it too.
            max_bytes: the largest body.

        Raises:
            Transient: there was no answer, or none that is HTTP.
            TimedOut: the time was up.
            Permanent: the server's certificate is not valid, the address cannot be asked, or the
                body is larger than ``max_bytes``.
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
        """Ask the cluster's API server for an object or a list, once, as this Pod.

        The connection is kept for the attempt's next question. The token is read again when the
        server refuses it.

        Args:
            path: of the resource, quoted.
            query: what follows the question mark.
            accept: the form that is wanted; JSON by default.
            timeout_s: seconds for everything; what is left of the attempt's time bounds it too.
            max_bytes: the largest body.

        Returns:
            The body, or None where the object does not exist.

        Raises:
            Transient: there was no answer, or one that may be another the next time: 429, 5xx.
            TimedOut: the time was up.
            Permanent: this Pod's token is refused or lacks a right, the server's certificate is
                not valid, there is no API server to ask, or the body is larger than ``max_bytes``.
        """

    @reads("whether {host} accepts connections on port {port}")
    @abc.abstractmethod
    def connects(self, host: str, port: int, *, timeout_s: float = 1.0) -> bool:
        """Whether something accepts a TCP connection there, within seconds."""

    @reads("the address of {host}")
    @abc.abstractmethod
    def lookup(self, host: str, *, timeout_s: float = 10.0) -> str:
        """The first address of a host, IPv4 before IPv6.

        Raises:
            Permanent: there is no such name.
            Transient: nobody can say now.
            TimedOut: no answer in time.
        """

    @reads("the mounts of the container")
    @abc.abstractmethod
    def mounts(self) -> list[Mount]:
        """Everything that is mounted, in order of mounting; the last at a path is the one seen."""

    @reads("{path} in the container")
    @abc.abstractmethod
    def real_path(self, path: str, *, timeout_s: float = 10.0) -> str:
        """A path without symbolic links, as the mount table has it.

        Raises:
            TimedOut: a file system on the way did not answer.
        """

    @reads("whether the file system at {path} answers")
    @abc.abstractmethod
    def free_bytes(self, path: str, *, timeout_s: float = 10.0) -> int:
        """The bytes that are free in the file system at a path: the question whether it answers.

        Raises:
            OSError: it refuses.
            TimedOut: it does not answer.
        """

    @reads("the other instances of the job")
    @abc.abstractmethod
    def gather(self, roles: Mapping[str, int], log: Callable[[str], None]) -> Gathering | None:
        """Begin to meet the other instances of the job (`pairun.rendezvous`).

        Args:
            roles: how many instances each role has, in the job's order; the first one leads.
            log: takes lines for people.

        Returns:
            None where there is no way to it: no API server, no address.
        """

    @reads("the time that this attempt has left", none_in_review="always")
    @abc.abstractmethod
    def remaining_s(self) -> float | None:
        """Seconds until this attempt is stopped, or None when nothing bounds it."""

    @reads("the time of the run")
    @abc.abstractmethod
    def now(self) -> float:
        """Seconds since the epoch."""

    # changing: allowed in `apply` only (and `sleep`, `post` and `post_api` in `check`)

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
        """Run a command; its output goes to the task's unless ``capture``.

        A status that is not zero is the caller's to judge.

        Args:
            argv: program and arguments; everybody on the machine can read them.
            stdin: what it reads; nothing by default.
            env: variables in addition to the task's environment; None removes one.
            cwd: the directory it runs in.
            capture: take its output and its errors.
            watch: with ``capture``, is given every piece of its errors as it comes.
            pass_fds: open files it inherits, under the same numbers.
            until: asked twice a second; once it says yes, the command is ended (TERM, then KILL).

        Raises:
            Permanent: the program does not exist or cannot be executed.
            TimedOut: the attempt's time was up.
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
        """Send something to a server, once; in all else this is `fetch`, so it is asked there, too.

        Args:
            url: an http or https address; credentials go into ``headers``.
            data: the body; ``Content-Type`` is one of the headers.
            headers: further headers; a `Secret` is shown nowhere.
            timeout_s: seconds for everything; what is left of the attempt's time bounds it too.

        Raises:
            Failure: as `fetch`.
        """

    @changes("create an object in the cluster")
    @abc.abstractmethod
    def post_api(self, path: str, data: bytes, *, timeout_s: float = 10.0) -> bytes | None:
        """Have the cluster's API server make an object, once, as this Pod.

        Args:
            path: of the collection, quoted.
            data: the object as JSON; with a name of its own, asking twice makes one.
            timeout_s: seconds for everything; what is left of the attempt's time bounds it too.

        Returns:
            The object as it was made; None where there is one of that name already.

        Raises:
            Failure: as `ask_api`.
        """

    @changes("start {argv}")
    @abc.abstractmethod
    def start(self, argv: Sequence[str]) -> Talk:
        """Start a command to talk with; it is ended with the attempt, if not before.

        Args:
            argv: program and arguments; everybody on the machine can read them.

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
        """Take what a server has into a file: it appears whole and with its mode, or not at all.

        What arrives is kept beside the file until it is whole. Where the connection breaks, a
        failure is raised, and the next call goes on from there if the server can prove that it
        still has the same content (RFC 9110, 13.1.5 and 14); if not, it begins anew.

        Redirections are followed; ``headers`` go to no other server. TLS and proxies are as in
        `fetch`. The bytes so far are reported as `progress`.

        Args:
            url: an http or https address; one that is secret is shown nowhere, only its host.
            path: the file; its directory must exist, what stands there is replaced.
            headers: further headers; a `Secret` is shown nowhere.
            mode: of the file.
            sha256: what the content must be, in hexadecimal.
            max_bytes: the largest body.
            stall_s: the longest time without a byte; the attempt's time bounds the whole.

        Raises:
            Transient: no answer, a broken connection, 408, 425, 429, 5xx, no room on the disk.
            TimedOut: nothing came for ``stall_s``, or the attempt's time was up.
            Conflict: somebody else is writing the same file.
            Permanent: any other status, another content than ``sha256``, a body too large, or what
                `fetch` finds permanent.
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
        """Unpack a tar or zip archive: the directory appears whole, or not at all.

        Directories, files and links within the directory are made, owned by this process, without
        set-uid, set-gid and sticky bits, and writable by their owner alone.

        Args:
            archive: a file; tar as it is or with gzip, bzip2 or xz, or zip.
            directory: where to; one that exists is replaced.
            max_bytes: the most that its files may hold together.
            max_members: the most members.
            extra: further files in the directory: name to content.

        Raises:
            Permanent: no such archive, a member that leads outside, a device, a name that comes
                twice, or more than allowed.
            Transient: no room on the disk.
        """

    @changes("set the mode of {path}")
    @abc.abstractmethod
    def set_mode(self, path: str, mode: int) -> None:
        """Set the permissions of a file or directory; a link is not followed."""

    @changes("create the directory {path}")
    @abc.abstractmethod
    def make_dir(self, path: str, mode: int = 0o755) -> None:
        """Make a directory and its parents; one that exists is left as it is."""

    @changes("move {source}")
    @abc.abstractmethod
    def rename(self, source: str, target: str) -> None:
        """Move a path within one file system, atomically, replacing what is there."""

    @changes("remove {path}")
    @abc.abstractmethod
    def remove(self, path: str) -> None:
        """Remove a path and all below it; never crosses a mount point, follows no link."""

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
        """Mount by the system call alone (mount(2)), wholly or not at all.

        Args:
            source: what is mounted, as the mount table shall show it.
            target: a directory.
            kind: the file system's name; None makes the directory ``source`` appear there, too.
            data: options of the file system; the kernel alone sees them.
            subdir: the directory in it that is mounted; made, for everybody, where it is missing.
            read_only: whether nothing may be written.
            timeout_s: seconds for everything; what is left of the attempt's time bounds it too.

        Raises:
            OSError: the kernel or the server refuses; its ``filename`` is ``subdir`` where that
                was the matter.
            Permanent: the options are longer than the kernel takes.
            TimedOut: no answer in time.
        """

    @changes("unmount {target}")
    @abc.abstractmethod
    def unmount(self, target: str, *, timeout_s: float = 5.0) -> None:
        """Unmount; what is still in use, or does not answer, goes out of sight at once.

        Raises:
            OSError: the kernel refuses.
        """

    @changes("wait")
    @abc.abstractmethod
    def sleep(self, seconds: float) -> None:
        """Wait."""

    @changes("write to the log")
    @abc.abstractmethod
    def log(self, line: str) -> None:
        """Say one line to the person who reads the logs."""

    @changes("report progress")
    @abc.abstractmethod
    def progress(self, done: int, total: int | None = None, file: str = "") -> None:
        """Tell how many bytes are done, as often as you like.

        The journal and people get one record every few seconds at most, and the last one when the
        attempt ends.

        Args:
            done: bytes so far.
            total: bytes in all, where that is known.
            file: what they are bytes of.
        """


# --- the classes -------------------------------------------------------------------------------


class Module:
    """Common to both kinds; see `StateModule` and `CheckModule`.

    Attributes:
        phases: where the module may run.
        privileges: what it needs, in words.
        example: a task's module entry in YAML, as ``pairun doc`` prints it and a test runs it.
        tools: programs of pairun's image that init leaves below ``tools`` on the shared volume for
            the runtime phase; where the image has none, the module says so.
        not_yet: what this version does not do, where a module stands in plans before it works.
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
        """Yield a sentence for every combination of arguments that cannot work."""
        yield from ()


class StateModule(Module):
    """Brings the world into a state; a second run must find nothing to do.

    Attributes:
        verify: after `apply`, probe and plan once more and require "no change". A module that
            has verified its content while writing, or cannot promise (a plain command), says no.
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
    """Looks, waits or asks, and changes nothing that a later task could see."""

    def check(self, ctx: Context) -> Result | None:
        """Return when all is well; raise a `Failure` when not."""
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

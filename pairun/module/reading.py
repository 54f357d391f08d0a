"""The methods of the context that read: a module may call them in ``probe`` and ``check``."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from pairun.module.answers import Completed, Fetched, FileStat, Gathering, Mount
from pairun.module.effects import reads
from pairun.secrets.secret import Secret


class Reading(abc.ABC):
    """The methods of `Context` that change nothing."""

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
            NoSuchHost: the name does not exist.
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

    @reads("what is secret", none_in_review="always")
    @abc.abstractmethod
    def hide(self, texts: Sequence[str | Secret]) -> None:
        """Mask these texts from now on in every log, journal, report and message of the container.

        Call it with each secret that the plan does not hold: one that is read from a server or a
        file, or made. Values under 4 bytes are not masked.
        """

    @reads("the time that this attempt has left", none_in_review="always")
    @abc.abstractmethod
    def remaining_s(self) -> float | None:
        """Seconds until this attempt is stopped, or None without a limit."""

    @reads("the time of the run")
    @abc.abstractmethod
    def now(self) -> float:
        """Seconds since the epoch."""

"""What the methods of the context return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

import attrs


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
    """An instance of the job and its Pod, as it registered with the job's leader.

    Attributes:
        role: its role's name, as in the Pods' names.
        index: its number in the role.
        pod_uid: the Pod's UID.
        pod_ip: the address at which peers reach it.
        host_ip: its node's address.
        pod_name: the Pod's name.
    """

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
        leads: this instance is the leader.
        leader_runs: the leader's init containers have succeeded: the job runs already.
        over: why the instances cannot find each other; empty while they may.
    """

    peers: Sequence[Peer] | None
    complete: bool
    connected: bool
    leads: bool
    over: str

    @property
    def leader_runs(self) -> bool:
        """See above."""

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

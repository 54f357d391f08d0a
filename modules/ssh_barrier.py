"""Wait until every instance of the job can be reached by ssh."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

from pairun.module import (
    CheckModule,
    Context,
    Permanent,
    Result,
    Skip,
    Talk,
    TimedOut,
    arg,
    define,
    format_duration,
)

_MAX_CLUSTER = 256 * 1024 * 1024
_DEFAULT_MIN = 30.0
# How many instances one asks; each of these asks as many others.
_FAN_OUT = 16
_CONNECT_S = 20
_LOGIN_S = 30.0
_LOOK_S = (0.02, 0.25)
_PAUSES_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
# After so long without a login somebody else asks those that the unreachable one should.
_ADOPT_S = 10.0
# How much longer the others wait than the first, which tells them how it ended.
_LONGER_S = 15.0
_TELL_S = 5.0
_RESERVE_S = 1.0
_SHOWN = 10
_COMMAND = 'exec sh "$PAIRUN_SSH_DIR/probe"'
# The cluster's exit spec looks for these words.
_WORDS = "SSH barrier reaches max retry count"

_Missing = dict[str, str]


class _Peer(NamedTuple):
    """An instance: its number among all, its alias, its address."""

    rank: int
    name: str
    place: str


class _Link:
    """One instance that this one asks, over one login that is held until the end.

    Args:
        ctx: the world.
        peer: whom to ask.
        ssh: the command that logs in.

    Attributes:
        peer: whom.
        here: it let us in.
        state: what it said of those that it asks itself; None until it is there.
        trouble: why it is not reached.
        failed: a login was tried, and came to nothing; no other has since.
        gone: it has taken the answer.
    """

    def __init__(self, ctx: Context, peer: _Peer, ssh: list[str]) -> None:
        self.peer = peer
        self.here = False
        self.state: _Missing | None = None
        self.trouble = "no login yet"
        self.failed = False
        self.gone = False
        self.since = ctx.now()
        self._ctx = ctx
        self._argv = [*ssh, peer.name, _COMMAND]
        self._talk: Talk | None = None
        self._taken = b""
        self._tries = 0
        self._next = self._begun = 0.0
        self._pause = _LOOK_S[0]

    def step(self, word: bytes = b"look\n") -> None:
        """Log in, or hear what it said and ask again."""
        now = self._ctx.now()
        if self._talk is None:
            if now >= self._next:
                self._talk, self._taken, self._begun = self._ctx.start(self._argv), b"", now
            return
        self._taken += self._talk.take()
        ended = self._talk.code() is not None
        *lines, self._taken = self._taken.split(b"\n")
        for line in lines:
            self._hear(line.strip().decode(errors="replace"))
        if lines and self.here:
            self._next = now + self._pause
            self._pause = min(self._pause * 1.5, _LOOK_S[1])
        if self.here and self._next and now >= self._next:
            self._next = 0.0
            self._talk.say(word)
        if ended and not self.gone:
            self._again(self.trouble or "the login ended")
        elif not self.here and now - self._begun > _LOGIN_S:
            self._again(f"no login within {format_duration(_LOGIN_S)}")

    def _hear(self, line: str) -> None:
        if line == "pairun-gone":
            self.gone = True
            return
        if line == "pairun-here":
            self.here, self.trouble, self.failed = True, "", False
        elif self.here and line.startswith("{"):
            try:
                self.state = json.loads(line)
            except ValueError:
                self.trouble = "it says something that is not understood"
        elif self.here:
            self.state = None  # it waits for its own sshd still
        elif line:
            self.trouble = line

    def _again(self, why: str) -> None:
        """Begin anew, a little later each time."""
        self.close()
        self.here, self.state, self.trouble, self.failed = False, None, why, True
        self._next = self._ctx.now() + _PAUSES_S[min(self._tries, len(_PAUSES_S) - 1)]
        self._tries += 1

    def say(self, data: bytes) -> None:
        """Tell it something, if it hears."""
        if self.here and self._talk is not None:
            self._talk.say(data)

    def ended(self) -> bool:
        """Whether the other side has hung up."""
        return self._talk is None or self._talk.code() is not None

    def close(self) -> None:
        """Hold it no longer."""
        if self._talk is not None:
            self._talk.end()
            self._talk = None


@define
class SshBarrier(CheckModule):
    """Wait until every instance of the job lets the others in by ssh.

    The first instance logs in to a few others, each of these to a few more, and so on: every
    instance is logged in to once, all at the same time. Each says upwards how those below it are;
    when all are well, the word goes down the same way. Nobody passes before everybody was reached.
    """

    phases = ("runtime",)
    privileges = "none; `ssh_setup` must have run"
    example = "ssh_barrier: {}"
    tools: ClassVar[tuple[str, ...]] = ("ssh/ssh",)

    wanted: Any = arg("Whether the instances reach each other at all.", default=True)
    timeout_min: Any = arg("How many minutes to wait; 30 by default.", default=None)

    def check(self, ctx: Context) -> Result:
        """Ask those below, tell the one above, wait for its word."""
        if str(self.wanted).strip().lower() != "true":
            raise Skip(
                "ssh between the instances (jobssh) is not asked for: there is nothing to wait for"
            )
        peers, own = _peers(ctx)
        if len(peers) < 2:
            raise Skip("this is the only instance")
        folder = os.path.join(ctx.pai_dir, "run", "ssh")
        if ctx.stat(os.path.join(folder, "id")) is None:
            raise Permanent(
                "the job has no key pair: its instances cannot log in to each other",
                fault="platform",
                hint="let the user's extension have jobSSH, or give the job a rendezvous key",
            )
        limit, began = self._limit_s(ctx), ctx.now()
        tree = _Tree(ctx, folder, peers, own, limit)
        try:
            tree.wait()
        finally:
            tree.close()
        seconds = format_duration(ctx.now() - began)
        return Result(message=f"all {len(peers)} instances are reached by ssh after {seconds}")

    def _limit_s(self, ctx: Context) -> float:
        try:
            given = float(self.timeout_min) if self.timeout_min not in (None, "") else _DEFAULT_MIN
        except (TypeError, ValueError):
            given = -1.0
        if not 0 < given < 1e6:
            raise Permanent(
                f"the time of the ssh barrier is no number of minutes: {self.timeout_min!r}",
                fault="user",
            )
        return given * 60


class _Tree:
    """The part of the barrier that this instance has.

    Args:
        ctx: the world.
        folder: of ssh, on the volume.
        peers: all instances.
        own: this one's number.
        limit_s: how long the first one waits.
    """

    def __init__(
        self, ctx: Context, folder: str, peers: list[_Peer], own: int, limit_s: float
    ) -> None:
        self._ctx, self._folder, self._peers, self._own = ctx, folder, peers, own
        self._began = ctx.now()
        self._limit_s = limit_s if own == 0 else limit_s + _LONGER_S
        if (left := ctx.remaining_s()) is not None:
            self._limit_s = min(self._limit_s, left - _RESERVE_S - _TELL_S)
        ours = os.path.join(ctx.pai_dir, "tools", "ssh", "ssh")
        program = ours if ctx.stat(ours) is not None else "ssh"
        # Of what people have in ~/.ssh nothing counts here.
        options = ("BatchMode=yes", f"ConnectTimeout={_CONNECT_S}", "ControlPath=none",
                   "ServerAliveInterval=15")  # fmt: skip
        self._ssh = [program, "-T", "-F", os.path.join(folder, "config")]
        self._ssh += [word for option in options for word in ("-o", option)]
        self._links: dict[int, _Link] = {}
        for rank in _below(own, len(peers)):
            self._link(rank)
        if own == 0:
            self._link(0)  # nobody else logs in to the first
        # What an earlier run of this container was told counts no more, unless it was to start.
        if ctx.stat(os.path.join(folder, "failed")) is not None:
            ctx.remove(os.path.join(folder, "failed"))
        self._told = self._said = ""
        self._pause = _LOOK_S[0]

    def _link(self, rank: int) -> None:
        if rank not in self._links:
            self._links[rank] = _Link(self._ctx, self._peers[rank], self._ssh)

    def wait(self) -> None:
        """Until the word has come, and was passed on.

        Raises:
            TimedOut: some were not reached; who, and why.
        """
        while not self._is_open():
            for link in list(self._links.values()):
                link.step()
                if link.failed and self._ctx.now() - link.since > _ADOPT_S:
                    for rank in _below(link.peer.rank, len(self._peers)):
                        self._link(rank)
            missing = self._missing()
            self._tell(missing)
            if self._own == 0 and not missing:
                self._ctx.write_file(os.path.join(self._folder, "open"), b"")
                continue
            if failed := self._ctx.read_file(os.path.join(self._folder, "failed"), 1024 * 1024):
                missing = json.loads(failed)
                self._refuse(missing)
                raise self._late(missing)
            if self._ctx.now() - self._began > self._limit_s:
                if self._own:
                    missing.setdefault(self._peers[0].name, "it has not said that all are there")
                self._refuse(missing)
                raise self._late(missing)
            self._ctx.sleep(self._pause)
            self._pause = min(self._pause * 1.5, _LOOK_S[1])
        self._release()

    def _is_open(self) -> bool:
        return self._ctx.stat(os.path.join(self._folder, "open")) is not None

    def _missing(self) -> _Missing:
        """Who below is not known to be well, and why."""
        out: _Missing = {}
        for rank, link in self._links.items():
            name = link.peer.name
            if not link.here:
                out[name] = f"{link.peer.place}: {link.trouble}"
            elif rank == self._own:
                continue
            elif link.state is None:
                out[name] = "its own sshd runs, but it is not at the barrier yet"
            else:
                out |= link.state
        for rank, link in self._links.items():
            # One that somebody reached is not missing, whoever else does not reach it.
            if link.here and (link.state is not None or rank == self._own):
                out.pop(link.peer.name, None)
        for rank in [r for r, link in self._links.items() if link.here is False]:
            for below in _all_below(rank, len(self._peers)):
                if below not in self._links:
                    out.setdefault(self._peers[below].name, "not asked yet")
        return out

    def _tell(self, missing: _Missing) -> None:
        """For the one above, which reads it by ssh, and for people."""
        text = json.dumps(missing)
        if text != self._told:
            self._told, self._pause = text, _LOOK_S[0]
            self._ctx.write_file(os.path.join(self._folder, "state"), text.encode() + b"\n")
        if self._own == 0 and (said := f"{len(self._peers) - len(missing)}") != self._said:
            if not self._said or not missing:
                self._ctx.log(f"{said} of {len(self._peers)} instances are reached by ssh")
            self._said = said

    def _release(self) -> None:
        """Tell those below that all are there; what breaks is tried again for a while."""
        end = self._ctx.now() + _TELL_S
        waiting = [link for rank, link in self._links.items() if rank != self._own]
        for link in waiting:
            link.say(b"go\n")
        while waiting and self._ctx.now() < end:
            for link in waiting:
                link.step(b"go\n")
            waiting = [link for link in waiting if not link.gone]
            if waiting:
                self._ctx.sleep(_LOOK_S[0])

    def _refuse(self, missing: _Missing) -> None:
        """Tell those below that not all are there, and who is not."""
        told = [link for rank, link in self._links.items() if rank != self._own and link.here]
        for link in told:
            link.say(b"no\n" + json.dumps(missing).encode() + b"\n")
        end = self._ctx.now() + _TELL_S
        while self._ctx.now() < end and not all(link.ended() for link in told):
            self._ctx.sleep(_LOOK_S[0])

    def _late(self, missing: _Missing) -> TimedOut:
        shown = "; ".join(f"{name} ({why})" for name, why in list(missing.items())[:_SHOWN])
        more = f"; and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        waited = format_duration(self._ctx.now() - self._began)
        return TimedOut(
            f"{_WORDS}: after {waited} {len(missing)} of {len(self._peers)} instances are not "
            f"reached: {shown}{more}",
            fault="platform",
            hint="see the sshd of those instances: their runtime.log, and run/ssh/sshd.log",
        )

    def close(self) -> None:
        """Leave no login behind."""
        for link in self._links.values():
            link.close()


def _below(rank: int, count: int) -> range:
    """Whom an instance asks."""
    first = rank * _FAN_OUT + 1
    return range(min(first, count), min(first + _FAN_OUT, count))


def _all_below(rank: int, count: int) -> Iterator[int]:
    for child in _below(rank, count):
        yield child
        yield from _all_below(child, count)


def _peers(ctx: Context) -> tuple[list[_Peer], int]:
    """Every instance of the job, and which of them this one is."""
    path = os.path.join(ctx.pai_dir, "runtime.d", "cluster.json")
    try:
        cluster: Mapping[str, Any] = json.loads(ctx.read_file(path, _MAX_CLUSTER) or b"{}")
        own, own_rank = cluster["own"], -1
        found: list[_Peer] = []
        for role in cluster["roles"]:
            for instance in role["instances"]:
                if (role["fc_name"], instance["index"]) == (own["role"], own["index"]):
                    own_rank = len(found)
                host, ports = instance.get("host_ip"), (instance.get("ports") or {}).get("ssh")
                if not host or not ports:
                    raise Skip("the job does not wait for its instances: not all have an address")
                name = f"{role['fc_name']}-{instance['index']}"
                found.append(_Peer(len(found), name, f"{host} port {ports[0]}"))
    except (ValueError, KeyError, TypeError) as e:
        raise Permanent(f"{path} is not what init writes: {e!r}", fault="platform") from e
    if own_rank < 0:
        raise Permanent(f"{path} does not have this instance itself", fault="platform")
    return found, own_rank

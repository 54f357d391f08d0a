"""This instance's part of the barrier: the instances that it asks, and what it forwards."""

from __future__ import annotations

import json
import os

from pairun.module import Context, TimedOut, format_duration, parse_record

from .link import LOOK_S, Link, Missing
from .peers import Peer, children, descendants

_CONNECT_S = 20
_ADOPT_S = 10.0
"""Seconds without a login to an instance after which its parent asks the instances below it."""

_LONGER_S = 15.0
"""Seconds that the others wait longer than the first instance, which sends them the result."""

_TELL_S = 5.0
_RESERVE_S = 1.0
_SHOWN = 10
_WORDS = "SSH barrier reaches max retry count"
"""The cluster's exit spec searches for these words."""


class Tree:
    """This instance's part of the barrier.

    Args:
        ctx: the world.
        folder: of ssh, on the volume.
        peers: all instances.
        own: the number of this one.
        limit_s: how long the first instance waits, in seconds.
    """

    def __init__(
        self, ctx: Context, folder: str, peers: list[Peer], own: int, limit_s: float
    ) -> None:
        self._ctx, self._folder, self._peers, self._own = ctx, folder, peers, own
        self._began = ctx.now()
        self._limit_s = limit_s if own == 0 else limit_s + _LONGER_S
        if (left := ctx.remaining_s()) is not None:
            self._limit_s = min(self._limit_s, left - _RESERVE_S - _TELL_S)
        ours = os.path.join(ctx.pai_dir, "tools", "ssh", "ssh")
        program = ours if ctx.stat(ours) is not None else "ssh"
        # ~/.ssh must not affect these logins.
        options = ("BatchMode=yes", f"ConnectTimeout={_CONNECT_S}", "ControlPath=none",
                   "ServerAliveInterval=15")  # fmt: skip
        self._ssh = [program, "-T", "-F", os.path.join(folder, "config")]
        self._ssh += [word for option in options for word in ("-o", option)]
        self._links: dict[int, Link] = {}
        for rank in children(own, len(peers)):
            self._link(rank)
        if own == 0:
            self._link(0)  # no other instance logs in to the first
        # Ignore a failure from an earlier run of this container.
        if ctx.stat(os.path.join(folder, "failed")) is not None:
            ctx.remove(os.path.join(folder, "failed"))
        self._state = self._reached = ""
        self._pause = LOOK_S[0]

    def _link(self, rank: int) -> None:
        if rank not in self._links:
            self._links[rank] = Link(self._ctx, self._peers[rank], self._ssh)

    def wait(self) -> None:
        """Wait for the result, and forward it.

        Raises:
            TimedOut: instances were not reached; the message names them and the reasons.
        """
        is_open = os.path.join(self._folder, "open")
        while self._ctx.stat(is_open) is None:
            for link in list(self._links.values()):
                link.step()
                if link.failed and self._ctx.now() - link.since > _ADOPT_S:
                    for rank in children(link.peer.rank, len(self._peers)):
                        self._link(rank)
            missing = self._missing()
            self._report(missing)
            if self._own == 0 and not missing:
                self._ctx.write_file(is_open, b"")
                continue
            if failed := self._ctx.read_file(os.path.join(self._folder, "failed"), 1024 * 1024):
                missing = parse_record(failed) or missing
                self._refuse(missing)
                raise self._late(missing)
            if self._ctx.now() - self._began > self._limit_s:
                if self._own:
                    missing.setdefault(
                        self._peers[0].name, "it has not reported that it reached all instances"
                    )
                self._refuse(missing)
                raise self._late(missing)
            self._ctx.sleep(self._pause)
            self._pause = min(self._pause * 1.5, LOOK_S[1])
        self._release()

    def _missing(self) -> Missing:
        """The instances below that are not reached, and the reasons."""
        missing: Missing = {}
        for rank, link in self._links.items():
            name = link.peer.name
            if not link.here:
                missing[name] = f"{link.peer.place}: {link.trouble}"
            elif rank == self._own:
                continue
            elif link.state is None:
                missing[name] = "its own sshd runs, but it is not at the barrier yet"
            else:
                missing |= link.state
        for rank, link in self._links.items():
            # An instance that one of us reaches is not missing.
            if link.here and (link.state is not None or rank == self._own):
                missing.pop(link.peer.name, None)
        for rank in [r for r, link in self._links.items() if link.here is False]:
            for below in descendants(rank, len(self._peers)):
                if below not in self._links:
                    missing.setdefault(self._peers[below].name, "not contacted yet")
        return missing

    def _report(self, missing: Missing) -> None:
        """Write the state for the instance above, which reads it by ssh, and log it for people."""
        text = json.dumps(missing)
        if text != self._state:
            self._state, self._pause = text, LOOK_S[0]
            self._ctx.write_file(os.path.join(self._folder, "state"), text.encode() + b"\n")
        if self._own == 0 and (reached := f"{len(self._peers) - len(missing)}") != self._reached:
            if not self._reached or not missing:
                self._ctx.log(f"{reached} of {len(self._peers)} instances are reached by ssh")
            self._reached = reached

    def _release(self) -> None:
        """Tell the instances below that all are reached; retry for a while."""
        end = self._ctx.now() + _TELL_S
        waiting = [link for rank, link in self._links.items() if rank != self._own]
        for link in waiting:
            link.say(b"go\n")
        while waiting and self._ctx.now() < end:
            for link in waiting:
                link.step(b"go\n")
            waiting = [link for link in waiting if not link.gone]
            if waiting:
                self._ctx.sleep(LOOK_S[0])

    def _refuse(self, missing: Missing) -> None:
        """Tell the instances below which instances are missing."""
        reached = [link for rank, link in self._links.items() if rank != self._own and link.here]
        for link in reached:
            link.say(b"no\n" + json.dumps(missing).encode() + b"\n")
        end = self._ctx.now() + _TELL_S
        while self._ctx.now() < end and not all(link.ended() for link in reached):
            self._ctx.sleep(LOOK_S[0])

    def _late(self, missing: Missing) -> TimedOut:
        shown = "; ".join(f"{name} ({why})" for name, why in list(missing.items())[:_SHOWN])
        more = f"; and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        waited = format_duration(self._ctx.now() - self._began)
        return TimedOut(
            f"{_WORDS}: after {waited} {len(missing)} of {len(self._peers)} instances are not "
            f"reached: {shown}{more}",
            fault="platform",
            hint="check the sshd of those instances: their runtime.log, and run/ssh/sshd.log",
        )

    def close(self) -> None:
        """End all logins."""
        for link in self._links.values():
            link.close()

"""One login from this instance to another one."""

from __future__ import annotations

from pairun.module import Context, Talk, format_duration, parse_json

from .peers import Peer

_LOGIN_S = 30.0
LOOK_S = (0.02, 0.25)
_PAUSES_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
_COMMAND = 'exec sh "$PAIRUN_SSH_DIR/probe"'
Missing = dict[str, str]


class Link:
    """One instance that this one asks, over one login until the end of the barrier.

    Args:
        ctx: the world.
        peer: the instance to ask.
        ssh: the command that logs in.

    Attributes:
        peer: the other instance.
        here: whether the login works.
        state: the missing instances below it; None until it is at the barrier.
        trouble: why it is not reached.
        failed: whether the last login failed.
        gone: whether it has received the result.
        since: when the barrier began, in seconds since the epoch.
    """

    def __init__(self, ctx: Context, peer: Peer, ssh: list[str]) -> None:
        self.peer = peer
        self.here = False
        self.state: Missing | None = None
        self.trouble = "no login yet"
        self.failed = False
        self.gone = False
        self.since = ctx.now()
        self._ctx = ctx
        self._argv = [*ssh, peer.name, _COMMAND]
        self._talk: Talk | None = None
        self._unread = b""
        self._tries = 0
        self._next = self._begun = 0.0
        self._pause = LOOK_S[0]

    def step(self, word: bytes = b"look\n") -> None:
        """Log in, or read its answer and ask once more."""
        now = self._ctx.now()
        if self._talk is None:
            if now >= self._next:
                self._talk, self._unread, self._begun = self._ctx.start(self._argv), b"", now
            return
        self._unread += self._talk.take()
        ended = self._talk.code() is not None
        *lines, self._unread = self._unread.split(b"\n")
        for line in lines:
            self._take(line.strip().decode(errors="replace"))
        if lines and self.here:
            self._next = now + self._pause
            self._pause = min(self._pause * 1.5, LOOK_S[1])
        if self.here and self._next and now >= self._next:
            self._next = 0.0
            self._talk.say(word)
        if ended and not self.gone:
            self._retry(self.trouble or "the login ended")
        elif not self.here and now - self._begun > _LOGIN_S:
            self._retry(f"no login within {format_duration(_LOGIN_S)}")

    def _take(self, line: str) -> None:
        if line == "pairun-gone":
            self.gone = True
            return
        if line == "pairun-here":
            self.here, self.trouble, self.failed = True, "", False
        elif self.here and line.startswith("{"):
            try:
                self.state = parse_json(line)
            except ValueError:
                self.trouble = "its answer is invalid"
        elif self.here:
            self.state = None  # its own sshd is not ready yet
        elif line:
            self.trouble = line

    def _retry(self, why: str) -> None:
        """Log in again later, after a pause that grows each time."""
        self.close()
        self.here, self.state, self.trouble, self.failed = False, None, why, True
        self._next = self._ctx.now() + _PAUSES_S[min(self._tries, len(_PAUSES_S) - 1)]
        self._tries += 1

    def say(self, data: bytes) -> None:
        """Send data, if the login works."""
        if self.here and self._talk is not None:
            self._talk.say(data)

    def ended(self) -> bool:
        """Whether the login has ended."""
        return self._talk is None or self._talk.code() is not None

    def close(self) -> None:
        """End the login."""
        if self._talk is not None:
            self._talk.end()
            self._talk = None

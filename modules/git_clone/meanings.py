"""Maps git's messages to failures."""

from __future__ import annotations

import re
from typing import NamedTuple

from pairun.module import (
    Completed,
    Context,
    Failure,
    Fault,
    NoSuchHost,
    Permanent,
    TimedOut,
    Transient,
)

_BUSY_S = 20.0
"""The wait for a server that limits requests and names no time, before jitter."""


class _Meaning(NamedTuple):
    """The meaning of a message.

    Attributes:
        words: a regular expression over one line of git's errors.
        sentence: the message about it.
        kind: the failure.
        fault: whose fault it is.
        hint: what to do about it.
    """

    words: str
    sentence: str
    kind: type[Failure]
    fault: Fault
    hint: str | None = None


_MEANINGS = (
    _Meaning(r"returned error: 429|\bHTTP 429\b|rate limit exceeded",
             "the git server limits requests", Transient, "platform"),
    _Meaning(r"returned error: (408|5\d\d)|\bHTTP 5\d\d\b|from HTTP 5\d\d",
             "the git server has an internal error", Transient, "platform"),
    _Meaning("could not read (username|password)|terminal prompts disabled",
             "the git server requires a login, and the address has no credentials", Permanent, "user",
             "write https://user:token@host/… with the token as a secret, or check the address: "
             "some servers require a login for a repository that does not exist"),
    _Meaning("returned error: 401|authentication failed|authorization error|authentication required",
             "the git server does not accept the user or the token", Permanent, "user",
             "check both, whether the token has expired, and whether it may read this repository"),
    _Meaning("host key verification failed",
             "the host key of the ssh server is unknown", Permanent, "user",
             "use https, or ask for its key to be added to the image's known_hosts"),
    _Meaning(r"returned error: 403|permission denied \(|access denied|from HTTP 403",
             "the git server refuses access", Permanent, "user",
             "ask the owner of the repository for access, or use a token that may read it"),
    _Meaning("transport '.*' not allowed|protocol '.*' is not supported|unable to find remote helper"
             "|remote helper .* aborted",
             "the repository refers to a kind of address that is not allowed", Permanent, "user",
             "submodules must have https, http, ssh or git addresses"),
    _Meaning("no url found for submodule|strange (hostname|pathname|port)|invalid value for 'submodule"
             "|suspicious submodule|submodule (url|path|name) looks like"
             "|looks like a command-line option|refusing to create|invalid path '|disallowed submodule"
             "|is a symbolic link|beyond a symbolic link|inside git dir|contains a symbolic link"
             "|symlinked directory",
             "the repository contains something that git refuses as unsafe", Permanent, "user",
             "check its .gitmodules and its paths"),
    _Meaning("unable to read (sha1 file|[0-9a-f]{40})|did not send all necessary objects"
             "|missing (blob|tree|commit|necessary objects)",
             "the repository on the server is damaged: objects are missing", Permanent, "unknown",
             "ask the owner of the repository to run 'git fsck' on the server, and to restore it"),
    _Meaning("no space left on device|disk quota exceeded",
             "there is not enough space for the clone", Transient, "unknown",
             "free space at 'dest', or clone less: depth: 1"),
    _Meaning("certificate|CAfile|issuer",
             "the git server's certificate is not trusted", Permanent, "platform",
             "the image of the init container needs the server's certificate authority"),
    _Meaning("could not resolve|temporary failure in name resolution|name or service not known",
             "the name of the git server cannot be resolved", Transient, "platform"),
    _Meaning("operation too slow|timed out|timeout",
             "the git server stopped answering", Transient, "platform"),
    _Meaning("remote branch .* not found|couldn't find remote ref",
             "the branch or tag does not exist", Permanent, "user",
             "check its spelling, and whether it was merged and deleted"),
    _Meaning("is this a git repository|not valid: |redirect",
             "the server at this address does not serve a git repository", Permanent, "user",
             "check the address; a login page or a proxy may answer instead"),
    _Meaning("repository .* not found|repository not found|repository .* does not exist"
             "|does not appear to be a git repository|returned error: 404|from HTTP 404",
             "the repository does not exist", Permanent, "user",
             "check the address; a private repository without credentials looks the same"),
    _Meaning("dubious ownership",
             "the repository belongs to another user", Permanent, "user"),
    _Meaning("connection (refused|reset|closed)|failed to connect|couldn't connect|unable to connect"
             "|network is unreachable|no route to host|empty reply|early eof|unexpected disconnect"
             "|hung up|rpc failed|transfer closed|invalid index-pack|bad line length|inflate"
             "|pack (is|has)|expected flush|gnutls|ssl_|ssl routines|SSL/TLS",
             "the connection to the git server broke", Transient, "platform"),
)  # fmt: skip
"""In order of precedence; git's messages are English, because LC_ALL is C."""


_SERVER_FAILS = re.compile("remote: fatal: unable to read [0-9a-f]{40}")


_UNRESOLVED = re.compile(
    r"could not resolve (?:host|proxy|hostname):? ([\w.:-]{1,253}?)(?:: (.*))?$",
    re.IGNORECASE | re.MULTILINE,
)
"""The messages of curl, and of ssh followed by those of the name service (gai_strerror(3))."""
_NO_SUCH_NAME = ("Name or service not known", "Name does not resolve", "No address associated")


def require_host(done: Completed, ctx: Context) -> None:
    """Fail if git, or the ssh that it started, got a host name that does not exist.

    curl prints the same message for a wrong name and for a silent name server, so the name in it is
    looked up here.

    Raises:
        NoSuchHost: the name does not exist.
    """
    unresolved = _UNRESOLVED.search(done.stderr.decode("utf-8", "replace"))
    if unresolved is None:
        return
    host, because = unresolved.groups()
    if because is None:
        try:
            ctx.lookup(host)
        except NoSuchHost:
            raise
        except (Transient, TimedOut):
            return
    elif because.startswith(_NO_SUCH_NAME):
        raise NoSuchHost.named(host, because.strip())


def failure_of(command: str, done: Completed, asked_wait_s: float | None = None) -> Failure:
    """The failure for git's errors; the first of `_MEANINGS` with a matching line wins.

    Args:
        asked_wait_s: how long the server asked us to wait.
    """
    if done.code < 0:
        return Transient(f"git {command} was killed by signal {-done.code}", fault="unknown")
    errors = re.split("[\r\n]+", done.stderr.decode("utf-8", "replace"))
    # A server's text (remote:) is for people, unless git itself reports there that it fails.
    errors = [x.removeprefix("remote: ") if _SERVER_FAILS.match(x) else x for x in errors]
    lines = [x for x in errors if x.strip() and not x.startswith(("warning:", "hint:", "remote:"))]
    for meaning in _MEANINGS:
        for line in reversed(lines):
            # Ignore the words of an address, which a user chooses.
            if not re.search(meaning.words, re.sub(r"\w+://\S+", "…", line), re.IGNORECASE):
                continue
            wait = asked_wait_s if issubclass(meaning.kind, Transient) else None
            if wait is None and meaning is _MEANINGS[0]:
                wait = _BUSY_S
            message = f"{meaning.sentence} (git {command}: {_plain(line)})"
            return meaning.kind(message, fault=meaning.fault, hint=meaning.hint, retry_after_s=wait)
    # git may print advice after its errors.
    said = [x for x in lines if x.startswith(("fatal:", "error:"))] or lines
    last = _plain(said[-1]) if said else f"exit code {done.code}"
    return Transient(f"git {command} failed: {last}", fault="unknown")


def _plain(line: str) -> str:
    return re.sub("^(fatal|error): ", "", line.strip())

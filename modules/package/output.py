"""The meaning of an installer's output."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pairun.module import Completed, Permanent, Transient

LOCKED = re.compile(
    "Could not get lock|Unable to lock|Unable to acquire the dpkg frontend lock|"
    "is another process using it|Waiting for process with pid|Another app is currently holding"
)
_HOLDER = re.compile(r"held by process ([0-9]{1,9})(?: \(([^)\s]{1,40})\))?|with pid ([0-9]{1,9})")
INTERRUPTED = "dpkg --configure -a"
NETWORK = re.compile(
    "Failed to fetch|Temporary failure|Could not resolve|Couldn't resolve|Could not connect|"
    "Connection (failed|refused|timed out)|Hash Sum mismatch|Some index files failed|Curl error|"
    "Failed to download|Cannot download|Cannot retrieve|temporary error|network error|"
    "DNS (lookup|:)|Network is unreachable|Timeout was reached|Error: Failed to synchronize cache",
    re.IGNORECASE,
)
UNKNOWN = re.compile(
    "Unable to locate package|has no installation candidate|Couldn't find any package|"
    "No match for argument|Unable to find a match|No package .{1,100} available|"
    r"No package matches|no such package|unable to select packages",
    re.IGNORECASE,
)
STALE = re.compile(r"404 +Not Found")
_FULL = re.compile("No space left on device|enough free space|Read-only file system")


def require_success(done: Completed, names: Sequence[str]) -> None:
    """Return if the installation succeeded.

    Raises:
        Permanent: a name is unknown, or the file system is full.
        Transient: the network failed, or anything else.
    """
    if done.code == 0:
        return
    output = output_of(done)
    what = f"{', '.join(names)} cannot be installed"
    for words, kind, fault in ((NETWORK, Transient, "platform"), (UNKNOWN, Permanent, "user"),
                               (_FULL, Permanent, "platform")):  # fmt: skip
        if (line := _line_with(output, words)) is not None:
            raise kind(f"{what}: {line}", fault=fault)  # type: ignore[arg-type]
    raise Transient(f"{what}: {last_line(done)}")


def lock_holder(output: str) -> str:
    """The process that holds the lock, for people."""
    match = _HOLDER.search(output)
    if match is None:
        return "another process"
    return f"process {match[1] or match[3]}" + (f" ({match[2]})" if match[2] else "")


def output_of(done: Completed) -> str:
    """The output and the errors of a command."""
    return (done.stdout + b"\n" + done.stderr).decode("utf-8", "replace")


def _line_with(output: str, words: re.Pattern[str]) -> str | None:
    """The first error with these words, else the first line with them."""
    lines = [_plain(line) for line in output.splitlines() if words.search(line)]
    return next(
        (x for x in lines if re.match("E:|error", x, re.IGNORECASE)), next(iter(lines), None)
    )


def last_line(done: Completed) -> str:
    """The last line of a command's output."""
    lines = [_plain(line) for line in output_of(done).splitlines() if line.strip()]
    return lines[-1] if lines else f"the installer ended with {done.code}"


def _plain(line: str) -> str:
    """A line of output, without the credentials in an address."""
    line = re.sub("://[^/@ ]*@", "://******@", line.strip())
    return "".join(c if c.isprintable() else " " for c in line)[:300]

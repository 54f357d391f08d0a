"""Runs an installer, with files or with the distribution's servers, and reads what it says."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pairun.module import Completed, Conflict, Context, Permanent, Transient, format_duration

from .managers import ENVIRONMENT, Manager

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

_LOCK_LOOK_S = 1.0
_LOCK_WAIT_S = 300.0
"""How long to wait for the lock if the task has no time limit, in seconds."""

_RESERVE_S = 1.0
_APT_LISTS = "/var/lib/apt/lists"
_APT = (
    "apt-get", "--yes", "--no-install-recommends",
    # Changed settings stay; an unknown name is not a pattern.
    "-oDpkg::Options::=--force-confdef", "-oDpkg::Options::=--force-confold",
    "-oAPT::Cmd::Pattern-Only=true", "-oAPT::Get::AutomaticRemove=false",
)  # fmt: skip
_APT_NO_SOURCES = ("-oDir::Etc::sourcelist=/dev/null", "-oDir::Etc::sourceparts=/dev/null")


def files_command(manager: Manager, files: Sequence[str]) -> list[str]:
    """The command that installs files without the network."""
    if manager.program == "apt-get":
        return [*_APT, *_APT_NO_SOURCES, "install", *files]
    if manager.program == "apk":
        return ["apk", "add", "--no-network", *files]
    return [*_dnf(manager), "--disablerepo=*", "install", *files]


def _dnf(manager: Manager) -> list[str]:
    # The old yum has no weak dependencies.
    weak = [] if manager.program == "yum" else ["--setopt=install_weak_deps=0"]
    return [manager.program, "-y", *weak]


def install_from_network(ctx: Context, manager: Manager, names: Sequence[str]) -> None:
    """Install from the distribution's servers.

    Raises:
        Failure: the installation fails.
    """
    if manager.program == "apk":
        require_success(run_installer(ctx, ["apk", "add", "--no-cache", *names]), names)
    elif manager.program != "apt-get":
        require_success(run_installer(ctx, [*_dnf(manager), "install", *names]), names)
    else:
        install = [*_APT, "install", *names]
        if any("_Packages" in f for f in ctx.list_dir(_APT_LISTS) or ()):
            done = run_installer(ctx, install)
            if not (UNKNOWN.search(output_of(done)) or STALE.search(output_of(done))):
                return require_success(done, names)
        update = run_installer(ctx, ["apt-get", "-oAPT::Update::Error-Mode=any", "update"])
        # Older versions exit with 0 if a server does not respond.
        if update.code == 0 and NETWORK.search(output_of(update)):
            update = update._replace(code=100)
        require_success(update, names)
        require_success(run_installer(ctx, install), names)
    return None


def run_installer(ctx: Context, argv: Sequence[str]) -> Completed:
    """Run an installer; waits for a running one, and repairs after a killed one.

    Raises:
        Conflict: another installer runs for too long.
    """
    began, repaired, logged = ctx.now(), False, ""
    while True:
        done = ctx.run(argv, env=ENVIRONMENT, capture=True)
        output = output_of(done)
        if done.code == 0:
            return done
        if INTERRUPTED in output and not repaired:
            repaired = True
            ctx.log("an installation was interrupted; completing it (dpkg --configure -a)")
            ctx.run(["dpkg", "--force-confdef", "--force-confold", "--configure", "-a"],
                    env=ENVIRONMENT, capture=True)  # fmt: skip
            continue
        if not LOCKED.search(output):
            return done
        holder = lock_holder(output)
        left, waited = ctx.remaining_s(), ctx.now() - began
        limit = _LOCK_WAIT_S if left is None else waited + left - _RESERVE_S
        if waited + _LOCK_LOOK_S > limit:
            raise Conflict(
                f"the database of packages is locked by {holder}, for {format_duration(waited)} now",
                hint="another installation runs in this container; give the task more time",
            )
        if holder != logged:
            logged = holder
            ctx.log(f"the database of packages is locked by {holder}; waiting")
        ctx.sleep(_LOCK_LOOK_S)


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

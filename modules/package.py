"""Packages of the image's distribution."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pairun.module import (
    Completed,
    Conflict,
    Context,
    Permanent,
    Result,
    StateModule,
    Transient,
    Verdict,
    arg,
    define,
    format_duration,
    no_change,
    will_change,
)

_QUERY_S = 60.0
_LOCK_LOOK_S = 1.0
# Where nothing else bounds the wait for somebody who holds the database.
_LOCK_WAIT_S = 300.0
_RESERVE_S = 1.0
_APT_LISTS = "/var/lib/apt/lists"

# No dialogue; English words, because some of them are read here.
_ENV = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C", "LANGUAGE": None, "NEEDRESTART_SUSPEND": "1"}  # fmt: skip

_APT = (
    "apt-get", "--yes", "--no-install-recommends",
    # A file of settings that somebody has changed stays; unknown names are no patterns.
    "-oDpkg::Options::=--force-confdef", "-oDpkg::Options::=--force-confold",
    "-oAPT::Cmd::Pattern-Only=true", "-oAPT::Get::AutomaticRemove=false",
)  # fmt: skip
_APT_NO_SOURCES = ("-oDir::Etc::sourcelist=/dev/null", "-oDir::Etc::sourceparts=/dev/null")

# What the programs say, of several versions; the first group that fits names the trouble.
_LOCKED = re.compile(
    "Could not get lock|Unable to lock|Unable to acquire the dpkg frontend lock|"
    "is another process using it|Waiting for process with pid|Another app is currently holding"
)
_HOLDER = re.compile(r"held by process ([0-9]{1,9})(?: \(([^)\s]{1,40})\))?|with pid ([0-9]{1,9})")
_INTERRUPTED = "dpkg --configure -a"
_NETWORK = re.compile(
    "Failed to fetch|Temporary failure|Could not resolve|Couldn't resolve|Could not connect|"
    "Connection (failed|refused|timed out)|Hash Sum mismatch|Some index files failed|Curl error|"
    "Failed to download|Cannot download|Cannot retrieve|temporary error|network error|"
    "DNS (lookup|:)|Network is unreachable|Timeout was reached|Error: Failed to synchronize cache",
    re.IGNORECASE,
)
_UNKNOWN = re.compile(
    "Unable to locate package|has no installation candidate|Couldn't find any package|"
    "No match for argument|Unable to find a match|No package .{1,100} available|"
    r"No package matches|no such package|unable to select packages",
    re.IGNORECASE,
)
_STALE = re.compile(r"404 +Not Found")
_FULL = re.compile("No space left on device|enough free space|Read-only file system")


class _Manager(NamedTuple):
    """How a distribution's packages are installed.

    Attributes:
        family: what ``ID`` or ``ID_LIKE`` of os-release may say.
        program: what installs.
        files: how a package's file ends.
    """

    family: tuple[str, ...]
    program: str
    files: str


_MANAGERS = (
    _Manager(("debian", "ubuntu"), "apt-get", ".deb"),
    _Manager(("fedora", "rhel", "centos"), "dnf", ".rpm"),
    _Manager(("fedora", "rhel", "centos"), "microdnf", ".rpm"),
    _Manager(("fedora", "rhel", "centos"), "yum", ".rpm"),
    _Manager(("alpine",), "apk", ".apk"),
)


class _State(NamedTuple):
    """What is missing, and by what it would be installed."""

    missing: tuple[str, ...]
    program: str


@define
class Package(StateModule):
    """Install packages of the image's distribution: apt, dnf (microdnf, yum) or apk.

    What is installed already is left as it is, and asks no network. What is missing comes from a
    folder of the image where that has it, else from the distribution's servers. A program that pairun
    or the image brings along is faster and needs no root.
    """

    privileges = "root; writes to the file system; network, unless the cache has it"
    example = "package: {names: [libnuma1, rsync]}"

    names: list[str] = arg("The packages, by the distribution's names.")
    cache: str = arg(
        "A folder in which a folder NAME holds the package's file and those that it needs.",
        default="/opt/pairun/packages",
    )

    def require(self) -> Iterator[str]:
        """Names that are names: no options, files, versions or patterns."""
        if not self.names:
            yield "'names' names no package"
        for name in self.names:
            if not re.fullmatch("[A-Za-z0-9][A-Za-z0-9.+_:-]*", name) or name.endswith("-"):
                yield f"{name!r} is no name of a package"
        if not os.path.isabs(self.cache):
            yield "'cache' must be absolute"

    def probe(self, ctx: Context) -> _State:
        """Which are installed, by the image's own database."""
        manager = _manager(ctx)
        names = list(dict.fromkeys(self.names))
        there = _installed(ctx, manager, names)
        return _State(tuple(n for n in names if n not in there), manager.program)

    def plan(self, state: _State) -> Verdict:
        """Whether any is missing."""
        if not state.missing:
            return no_change("every package is installed")
        return will_change(f"install {', '.join(state.missing)} with {state.program}")

    def apply(self, ctx: Context) -> Result:
        """Install what is missing: from the cache, then from the network."""
        manager = _manager(ctx)
        missing = list(self.probe(ctx).missing)
        if os.geteuid() != 0:
            raise Permanent(
                f"installing {', '.join(missing)} needs root, and this runs as user {os.geteuid()}",
                fault="user",
                hint="put the package into the image, or run the container as root",
            )
        cached = [n for n in missing if self._files(ctx, manager, n)]
        if cached:
            files = [f for n in cached for f in self._files(ctx, manager, n)]
            done = _attempt(ctx, _from_files(manager, files))
            if done.code != 0:
                ctx.log(f"{self.cache} does not do: {_last_line(done)}; asking the network")
            missing = list(self.probe(ctx).missing)
        if missing:
            _from_network(ctx, manager, missing)
        local = [n for n in cached if n not in missing]
        where = f", {len(local)} from {self.cache}" if local else ""
        count = len(local) + len(missing)
        return Result(message=f"{count} package{'s' if count != 1 else ''} installed{where}")

    def _files(self, ctx: Context, manager: _Manager, name: str) -> list[str]:
        folder = os.path.join(self.cache, name)
        found = ctx.list_dir(folder) or []
        return [os.path.join(folder, f) for f in found if f.endswith(manager.files)]


def _manager(ctx: Context) -> _Manager:
    """Who installs here: by os-release(5), and by what is there.

    Raises:
        Permanent: nobody.
    """
    text = (ctx.read_file("/etc/os-release") or ctx.read_file("/usr/lib/os-release") or b"").decode(
        "utf-8", "replace"
    )
    said = re.findall(r"^(?:ID|ID_LIKE)=[\"']?([^\"'\n]*)", text, re.MULTILINE)
    families = {word for line in said for word in line.lower().split()}
    there = [m for m in _MANAGERS if ctx.which(m.program)]
    # A distribution may offer another one's program as a tool; its own goes first.
    there.sort(key=lambda m: not families.intersection(m.family))
    if there:
        return there[0]
    programs = ", ".join(m.program for m in _MANAGERS)
    raise Permanent(
        f"this image has none of {programs}", fault="user", hint="put the package into the image"
    )


def _installed(ctx: Context, manager: _Manager, names: Sequence[str]) -> set[str]:
    """Those of the names that are installed, or that something installed provides."""
    if manager.program == "apt-get":
        return _installed_debs(ctx)
    ask = ("apk", "info", "-e") if manager.program == "apk" else ("rpm", "-q", "--whatprovides")
    return {n for n in names if ctx.query([*ask, n], env=_ENV, timeout_s=_QUERY_S).code == 0}


def _installed_debs(ctx: Context) -> set[str]:
    shown = "${Status}\\t${Package}\\t${Architecture}\\t${Provides}\\n"
    asked = ctx.query(["dpkg-query", "-W", "-f", shown], env=_ENV, timeout_s=_QUERY_S)
    found = set()
    for line in asked.stdout.decode("utf-8", "replace").splitlines():
        status, name, architecture, provides, *_ = [*line.split("\t"), "", "", ""]
        if status.endswith(" ok installed"):
            virtual = (p.split("(")[0].strip() for p in provides.split(","))
            found |= {name, f"{name}:{architecture}", *virtual}
    return found


def _from_files(manager: _Manager, files: Sequence[str]) -> list[str]:
    """The command that installs files, and asks no network."""
    if manager.program == "apt-get":
        return [*_APT, *_APT_NO_SOURCES, "install", *files]
    if manager.program == "apk":
        return ["apk", "add", "--no-network", *files]
    return [*_dnf(manager), "--disablerepo=*", "install", *files]


def _dnf(manager: _Manager) -> list[str]:
    # yum before dnf knows no weak dependencies.
    weak = [] if manager.program == "yum" else ["--setopt=install_weak_deps=0"]
    return [manager.program, "-y", *weak]


def _from_network(ctx: Context, manager: _Manager, names: Sequence[str]) -> None:
    """Install from the distribution's servers.

    Raises:
        Failure: it cannot be.
    """
    if manager.program == "apk":
        _succeed(_attempt(ctx, ["apk", "add", "--no-cache", *names]), names)
    elif manager.program != "apt-get":
        _succeed(_attempt(ctx, [*_dnf(manager), "install", *names]), names)
    else:
        install = [*_APT, "install", *names]
        if any("_Packages" in f for f in ctx.list_dir(_APT_LISTS) or ()):
            done = _attempt(ctx, install)
            if not (_UNKNOWN.search(_said(done)) or _STALE.search(_said(done))):
                return _succeed(done, names)
        update = _attempt(ctx, ["apt-get", "-oAPT::Update::Error-Mode=any", "update"])
        # Older versions end with 0 where a server did not answer.
        if update.code == 0 and _NETWORK.search(_said(update)):
            update = update._replace(code=100)
        _succeed(update, names)
        _succeed(_attempt(ctx, install), names)
    return None


def _attempt(ctx: Context, argv: Sequence[str]) -> Completed:
    """Run an installer; wait while another one is at work, and clear up after one that was killed.

    Raises:
        Conflict: another one is at work for longer than there is time.
    """
    began, repaired, told = ctx.now(), False, ""
    while True:
        done = ctx.run(argv, env=_ENV, capture=True)
        said = _said(done)
        if done.code == 0:
            return done
        if _INTERRUPTED in said and not repaired:
            repaired = True
            ctx.log("an installation was interrupted here; going on with it (dpkg --configure -a)")
            ctx.run(["dpkg", "--force-confdef", "--force-confold", "--configure", "-a"],
                    env=_ENV, capture=True)  # fmt: skip
            continue
        if not _LOCKED.search(said):
            return done
        who = _holder(said)
        left, waited = ctx.remaining_s(), ctx.now() - began
        limit = _LOCK_WAIT_S if left is None else waited + left - _RESERVE_S
        if waited + _LOCK_LOOK_S > limit:
            raise Conflict(
                f"the database of packages is locked by {who}, for {format_duration(waited)} now",
                hint="another installation runs in this container; give the task more time",
            )
        if who != told:
            told = who
            ctx.log(f"the database of packages is locked by {who}; waiting")
        ctx.sleep(_LOCK_LOOK_S)


def _holder(said: str) -> str:
    found = _HOLDER.search(said)
    if found is None:
        return "another process"
    return f"process {found[1] or found[3]}" + (f" ({found[2]})" if found[2] else "")


def _succeed(done: Completed, names: Sequence[str]) -> None:
    """Return when it did; else say why not, in the distribution's own words.

    Raises:
        Permanent: an unknown name, or a file system that takes no more.
        Transient: the network, and whatever else.
    """
    if done.code == 0:
        return
    said = _said(done)
    what = f"{', '.join(names)} cannot be installed"
    for words, kind, fault in ((_NETWORK, Transient, "platform"), (_UNKNOWN, Permanent, "user"),
                               (_FULL, Permanent, "platform")):  # fmt: skip
        if (line := _line_with(said, words)) is not None:
            raise kind(f"{what}: {line}", fault=fault)  # type: ignore[arg-type]
    raise Transient(f"{what}: {_last_line(done)}")


def _said(done: Completed) -> str:
    return (done.stdout + b"\n" + done.stderr).decode("utf-8", "replace")


def _line_with(said: str, words: re.Pattern[str]) -> str | None:
    """The first line with these words; one that is an error goes first."""
    lines = [_plain(line) for line in said.splitlines() if words.search(line)]
    return next(
        (x for x in lines if re.match("E:|error", x, re.IGNORECASE)), next(iter(lines), None)
    )


def _last_line(done: Completed) -> str:
    lines = [_plain(line) for line in _said(done).splitlines() if line.strip()]
    return lines[-1] if lines else f"the installer ended with {done.code}"


def _plain(line: str) -> str:
    """A line of a program, without a login that an address of a server may hold."""
    line = re.sub("://[^/@ ]*@", "://******@", line.strip())
    return "".join(c if c.isprintable() else " " for c in line)[:300]

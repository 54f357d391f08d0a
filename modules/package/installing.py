"""Runs an installer: with files, or with the distribution's servers."""

from __future__ import annotations

from collections.abc import Sequence

from pairun.module import Completed, Conflict, Context, format_duration

from .managers import ENVIRONMENT, Manager
from .output import (
    INTERRUPTED,
    LOCKED,
    NETWORK,
    STALE,
    UNKNOWN,
    lock_holder,
    output_of,
    require_success,
)

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

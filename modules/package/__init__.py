"""Packages of the image's distribution."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from pairun.module import (
    Context,
    Permanent,
    Result,
    StateModule,
    Verdict,
    arg,
    define,
    no_change,
    will_change,
)

from .installing import files_command, install_from_network, last_line, run_installer
from .managers import Manager, find_manager, installed_names


class _State(NamedTuple):
    """The packages that are missing, and the installer."""

    missing: tuple[str, ...]
    program: str


@define
class Package(StateModule):
    """Install packages of the image's distribution: apt, dnf (microdnf, yum) or apk.

    Installed packages stay as they are, and need no network. Missing ones come from a folder of the
    image if it has them, else from the distribution's servers. A program that pairun or the image
    provides is faster and needs no root.
    """

    privileges = "root; writes to the file system; network, unless the cache has it"
    example = "package: {names: [libnuma1, rsync]}"

    names: list[str] = arg("The packages, by the distribution's names.")
    cache: str = arg(
        "A folder with a folder NAME for each package: its file and those that it needs.",
        default="/opt/pairun/packages",
    )

    def require(self) -> Iterator[str]:
        """Names only: no options, files, versions or patterns."""
        if not self.names:
            yield "'names' names no package"
        for name in self.names:
            if not re.fullmatch("[A-Za-z0-9][A-Za-z0-9.+_:-]*", name) or name.endswith("-"):
                yield f"{name!r} is not the name of a package"
        if not os.path.isabs(self.cache):
            yield "'cache' must be absolute"

    def probe(self, ctx: Context) -> _State:
        """Find the missing packages in the image's database."""
        manager = find_manager(ctx)
        names = list(dict.fromkeys(self.names))
        installed = installed_names(ctx, manager, names)
        return _State(tuple(n for n in names if n not in installed), manager.program)

    def plan(self, state: _State) -> Verdict:
        """Whether a package is missing."""
        if not state.missing:
            return no_change("every package is installed")
        return will_change(f"install {', '.join(state.missing)} with {state.program}")

    def apply(self, ctx: Context) -> Result:
        """Install missing packages: from the cache, then from the network."""
        manager = find_manager(ctx)
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
            done = run_installer(ctx, files_command(manager, files))
            if done.code != 0:
                ctx.log(
                    f"{self.cache} does not have all packages: {last_line(done)}; using the network"
                )
            missing = list(self.probe(ctx).missing)
        if missing:
            install_from_network(ctx, manager, missing)
        local = [n for n in cached if n not in missing]
        where = f", {len(local)} from {self.cache}" if local else ""
        count = len(local) + len(missing)
        return Result(message=f"{count} package{'s' if count != 1 else ''} installed{where}")

    def _files(self, ctx: Context, manager: Manager, name: str) -> list[str]:
        folder = os.path.join(self.cache, name)
        files = ctx.list_dir(folder) or []
        return [os.path.join(folder, f) for f in files if f.endswith(manager.files)]

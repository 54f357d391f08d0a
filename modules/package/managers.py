"""The package managers of distributions, and the installed packages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from pairun.module import Context, Permanent

_QUERY_S = 60.0
ENVIRONMENT = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C", "LANGUAGE": None, "NEEDRESTART_SUSPEND": "1"}  # fmt: skip
"""No dialogue, and English messages, because pairun reads them."""


class Manager(NamedTuple):
    """A distribution's package manager.

    Attributes:
        family: values of ``ID`` or ``ID_LIKE`` in os-release.
        program: the installer.
        files: the suffix of a package file.
    """

    family: tuple[str, ...]
    program: str
    files: str


_MANAGERS = (
    Manager(("debian", "ubuntu"), "apt-get", ".deb"),
    Manager(("fedora", "rhel", "centos"), "dnf", ".rpm"),
    Manager(("fedora", "rhel", "centos"), "microdnf", ".rpm"),
    Manager(("fedora", "rhel", "centos"), "yum", ".rpm"),
    Manager(("alpine",), "apk", ".apk"),
)


def find_manager(ctx: Context) -> Manager:
    """The package manager of the image, by os-release(5) and the programs in it.

    Raises:
        Permanent: there is none.
    """
    text = (ctx.read_file("/etc/os-release") or ctx.read_file("/usr/lib/os-release") or b"").decode(
        "utf-8", "replace"
    )
    values = re.findall(r"^(?:ID|ID_LIKE)=[\"']?([^\"'\n]*)", text, re.MULTILINE)
    families = {word for line in values for word in line.lower().split()}
    installed = [m for m in _MANAGERS if ctx.which(m.program)]
    # A distribution may contain another one's program, too; its own has priority.
    installed.sort(key=lambda m: not families.intersection(m.family))
    if installed:
        return installed[0]
    programs = ", ".join(m.program for m in _MANAGERS)
    raise Permanent(
        f"this image has none of {programs}", fault="user", hint="put the package into the image"
    )


def installed_names(ctx: Context, manager: Manager, names: Sequence[str]) -> set[str]:
    """The names of packages that are installed, or that an installed package provides."""
    if manager.program == "apt-get":
        return _installed_debs(ctx)
    ask = ("apk", "info", "-e") if manager.program == "apk" else ("rpm", "-q", "--whatprovides")
    return {n for n in names if ctx.query([*ask, n], env=ENVIRONMENT, timeout_s=_QUERY_S).code == 0}


def _installed_debs(ctx: Context) -> set[str]:
    shown = "${Status}\\t${Package}\\t${Architecture}\\t${Provides}\\n"
    done = ctx.query(["dpkg-query", "-W", "-f", shown], env=ENVIRONMENT, timeout_s=_QUERY_S)
    names = set()
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        status, name, architecture, provides, *_ = [*line.split("\t"), "", "", ""]
        if status.endswith(" ok installed"):
            virtual = (p.split("(")[0].strip() for p in provides.split(","))
            names |= {name, f"{name}:{architecture}", *virtual}
    return names

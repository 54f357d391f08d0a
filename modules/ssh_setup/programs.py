"""The programs of ssh: those that init copied, or the image's."""

from __future__ import annotations

import os
from typing import NamedTuple

from pairun.module import Context

from .layout import ssh_folder


class Programs(NamedTuple):
    """The programs that ssh_setup runs.

    Attributes:
        sshd: the server; empty if there is none.
        session: the program with which our server starts sessions; empty for the image's server.
        ssh: the image's client, if ours is missing; empty otherwise.
        path: a folder that comes first in PATH; empty for none.
        shell: of sessions; empty if the image has none.
    """

    sshd: str
    session: str
    ssh: str
    path: str
    shell: str


def find_programs(ctx: Context) -> Programs:
    """The programs that init copied, else the image's."""
    tools = os.path.join(ctx.pai_dir, "tools")
    sshd, session = os.path.join(tools, "sshd"), os.path.join(tools, "ssh-session")
    if ctx.stat(sshd) is not None and ctx.stat(session) is not None:
        own = (sshd, session)
    else:
        places = (ctx.which("sshd"), "/usr/sbin/sshd", "/usr/local/sbin/sshd")
        own = (next((p for p in places if p and ctx.stat(p) is not None), ""), "")
    shell = _shell(ctx)
    if ctx.stat(os.path.join(tools, "ssh", "ssh")) is not None:
        return Programs(*own, "", os.path.join(tools, "ssh"), shell)
    wrapped = os.path.join(ssh_folder(ctx), "bin")
    known = [p for p in (ctx.env.get("PATH") or os.defpath).split(os.pathsep) if p != wrapped]
    ssh = next((p for d in known if ctx.stat(p := os.path.join(d, "ssh")) is not None), "")
    return Programs(*own, ssh, wrapped if ssh else "", shell)


def _shell(ctx: Context) -> str:
    """The user's shell if it can run commands, else bash, else sh."""
    listed = []
    for line in (ctx.read_file("/etc/passwd") or b"").decode(errors="replace").splitlines():
        parts = line.split(":")
        if len(parts) == 7 and parts[2] == str(os.getuid()):
            listed.append(parts[6])
            break
    usual = ("bash", "sh")
    listed = [p for p in listed if os.path.basename(p) not in ("nologin", "false", "sync", "")]
    listed += [p for name in usual if (p := ctx.which(name))] + [f"/bin/{n}" for n in usual]
    return next((p for p in listed if ctx.stat(p) is not None), "")


def search_path(ctx: Context, programs: Programs) -> str:
    """The task's ``PATH`` with the folder of the client first."""
    known = ctx.env.get("PATH") or os.defpath
    if not programs.path or programs.path in known.split(os.pathsep):
        return known
    return f"{programs.path}{os.pathsep}{known}"

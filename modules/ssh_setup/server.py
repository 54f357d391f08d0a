"""The programs of ssh, those that init copied or the image's; starts the sshd."""

from __future__ import annotations

import os
from typing import NamedTuple

from pairun.module import Conflict, Context, Permanent, Transient

_START_S = 5.0
_LOOK_S = 0.01


def ssh_folder(ctx: Context) -> str:
    """The folder on the shared volume with all files of ssh."""
    return os.path.join(ctx.pai_dir, "run", "ssh")


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


def is_running(ctx: Context) -> bool:
    """Whether our sshd runs; it writes its process number when it listens."""
    folder = ssh_folder(ctx)
    pid = (ctx.read_file(os.path.join(folder, "sshd.pid"), 64) or b"").strip()
    if not pid.isdigit():
        return False
    command = ctx.read_file(f"/proc/{int(pid)}/cmdline", 64 * 1024) or b""
    return f"{folder}/sshd_config".encode() in command


def start_sshd(ctx: Context, programs: Programs, port: int) -> None:
    """Start the sshd and wait until it responds.

    Raises:
        Permanent: there is no sshd, or it would refuse every login.
        Conflict: another process holds the port.
        Transient: sshd does not respond.
    """
    folder = ssh_folder(ctx)
    if not programs.sshd:
        message = "sshd is missing: neither init nor the image provides it"
        hint = "build pairun's image with its tools, or install openssh-server in your own"
        raise Permanent(message, fault="platform", hint=hint)
    if holder := ctx.port_taken(port):
        raise Conflict(f"port {port}, which is for ssh, is taken: {holder}", fault="platform")
    if not programs.session:
        _prepare_image_sshd(ctx)
    log, config = os.path.join(folder, "sshd.log"), os.path.join(folder, "sshd_config")
    env = {"PAIRUN_SSH_SHELL": programs.session, "PAIRUN_SSH_EMPTY": os.path.join(folder, "empty")}
    done = ctx.run([programs.sshd, "-f", config, "-E", log], env=env if programs.session else {})
    end = ctx.now() + _START_S
    while done.code == 0 and ctx.now() < end:
        if is_running(ctx):
            return
        ctx.sleep(_LOOK_S)
    lines = (ctx.read_file(log) or b"").decode(errors="replace").strip().splitlines()
    last = lines[-1] if lines else "nothing"
    ended = f", and ended with {done.code}" if done.code else ""
    raise Transient(f"sshd does not listen on port {port}{ended}; its last line: {last}")


def _prepare_image_sshd(ctx: Context) -> None:
    """Make the files that the image's sshd needs besides its configuration.

    Raises:
        Permanent: it would refuse every login.
    """
    ctx.log("using the image's own sshd: init provided none")
    if os.getuid() == 0:
        ctx.make_dir("/run/sshd")
        return
    users = (ctx.read_file("/etc/passwd") or b"").decode(errors="replace").splitlines()
    if not any(line.split(":")[2:3] == [str(os.getuid())] for line in users):
        message = (
            f"the user {os.getuid()} has no entry in the image's /etc/passwd, and its sshd refuses "
            "users without one"
        )
        raise Permanent(message, fault="user", hint="add the user to the image")

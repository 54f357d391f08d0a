"""Starts the sshd."""

from __future__ import annotations

import os

from pairun.module import Conflict, Context, Permanent, Transient

from .layout import ssh_folder
from .programs import Programs

_START_S = 5.0
_LOOK_S = 0.01


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

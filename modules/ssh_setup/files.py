"""The files in run/ssh: keys, and the configuration of client and server."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from pairun.module import Context

from .keys import derived, ed25519_pair, own_seed
from .peers import Peer
from .server import Programs, search_path, ssh_folder

_NOT_PASSED = {"_", "PWD", "OLDPWD", "SHLVL", "SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY"}
"""Variables of one shell or session, which other sessions do not get."""

_PROBE = """\
# What the barrier runs here by ssh: tells how this instance is, and takes the answer to it.
cd "$PAIRUN_SSH_DIR" || exit 1
echo pairun-here
while read -r word; do
  case $word in
    look) if [ -e state ] && read -r line <state; then echo "$line"; else echo waiting; fi ;;
    go) : >open && echo pairun-gone && exit 0 ;;
    no) read -r line && echo "$line" >failed; exit 0 ;;
  esac
done
"""


def all_files(
    ctx: Context,
    programs: Programs,
    port: int,
    pair: tuple[bytes, str] | None,
    people: Iterable[str],
    peers: Iterable[Peer],
) -> Iterator[tuple[str, tuple[bytes, int]]]:
    """Every file in the folder of ssh: its name, its content and its mode."""
    folder = ssh_folder(ctx)
    seed = own_seed(ctx)
    yield "seed", (seed, 0o600)
    yield "host_key", (ed25519_pair(derived(seed, b"the host"), "host")[0], 0o600)
    lines = dict.fromkeys(people)
    if pair is not None:
        yield "id", (pair[0], 0o600)
        yield "id.pub", (f"{pair[1]}\n".encode(), 0o644)
        known = {" ".join(line.split()[:2]) for line in lines}
        if " ".join(pair[1].split()[:2]) not in known:
            lines = {pair[1]: None, **lines}
    yield "authorized_keys", ("".join(f"{line}\n" for line in lines).encode(), 0o644)
    yield "config", (_client_config(folder, peers, programs).encode(), 0o644)
    yield "sshd_config", (_server_config(ctx, folder, programs, port).encode(), 0o644)
    yield "session", (_session(ctx, folder, programs), 0o600)
    yield "probe", (_PROBE.encode(), 0o644)
    if programs.ssh:
        for name in ("ssh", "scp", "sftp"):
            if own_program := ctx.which(name):
                text = f'#!/bin/sh\nexec {own_program} -F {folder}/config "$@"\n'
                yield f"bin/{name}", (text.encode(), 0o755)


def _client_config(folder: str, peers: Iterable[Peer], programs: Programs) -> str:
    lines = ["# The instances of this job. ~/.ssh/config overrides these settings."]
    if programs.ssh:
        # With -F, ssh reads only this file and the files that it includes.
        lines.append("Include ~/.ssh/config")
    for peer in peers:
        lines += [
            f"Host {' '.join(peer.names)}",
            f"  HostName {peer.host}",
            f"  Port {peer.port}",
            "  User root",
            f"  IdentityFile {folder}/id",
            "  IdentitiesOnly yes",
            # The default since OpenSSH 9.0 takes ten times as long as the rest of a login.
            "  KexAlgorithms curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256",
            "  StrictHostKeyChecking no",
            "  UserKnownHostsFile /dev/null",
            "  LogLevel ERROR",
        ]
    if programs.ssh:
        lines += ["Host *", "Include /etc/ssh/ssh_config"]
    return "\n".join(lines) + "\n"


def _server_config(ctx: Context, folder: str, programs: Programs, port: int) -> str:
    ours = bool(programs.session)
    root = os.getuid() == 0
    runtime_env = os.path.join(ctx.pai_dir, "runtime.d", "runtime_env.sh")
    settings = {
        "Port": port,
        "HostKey": f"{folder}/host_key",
        "PidFile": f"{folder}/sshd.pid",
        "AuthorizedKeysFile": f"{folder}/authorized_keys",
        "PubkeyAuthentication": "yes",
        "PasswordAuthentication": "no",
        "KbdInteractiveAuthentication": "no",
        # The platform chooses the owner of the volume.
        "StrictModes": "no",
        "UseDNS": "no",
        "X11Forwarding": "no",
        "PrintMotd": "no",
        "AcceptEnv": "LANG LC_*",
        "LoginGraceTime": 60,
        # mpirun logs in to many hosts at once, and each of them to others.
        "MaxStartups": 4096,
        "MaxSessions": 1024,
        "MaxAuthTries": 20,
        "ClientAliveInterval": 30,
        "ClientAliveCountMax": 10,
        "Subsystem": "sftp internal-sftp",
        "SetEnv": (
            f"PAIRUN_SSH_SESSION={folder}/session"
            if ours
            else f"BASH_ENV={runtime_env} PAIRUN_SSH_DIR={folder}"
        ),
        **({} if ours else {"UsePAM": "no"}),
        **({"PermitRootLogin": "prohibit-password", "AllowUsers": "root"} if root else {}),
    }
    return "".join(f"{name} {value}\n" for name, value in settings.items())


def _session(ctx: Context, folder: str, programs: Programs) -> bytes:
    """The shell, then the environment of sessions, which is the task's."""
    env = {
        **{name: value for name, value in ctx.env.items() if name not in _NOT_PASSED},
        "PATH": search_path(ctx, programs),
        "PAIRUN_SSH_DIR": folder,
    }
    entries = [programs.shell, *(f"{name}={value}" for name, value in sorted(env.items()))]
    return b"".join(each.encode("utf-8", "surrogateescape") + b"\0" for each in entries)

"""An sshd for the container, with the keys of the job and of people, and aliases for its peers."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import os
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

from pairun.module import (
    Conflict,
    Context,
    FileStat,
    Permanent,
    Result,
    Secret,
    Skip,
    StateModule,
    Transient,
    Verdict,
    arg,
    define,
    no_change,
    will_change,
)

_MAX_CLUSTER = 256 * 1024 * 1024
_START_S = 5.0
_LOOK_S = 0.01
_KEY_TYPES = (
    "ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com",
)  # fmt: skip
# Of one shell's life, and no part of a session's environment.
_NOT_PASSED = {"_", "PWD", "OLDPWD", "SHLVL", "SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY"}
_COMMENT = "pai-job-ssh"

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


class _File(NamedTuple):
    """A file of ours: its mode, and its content."""

    mode: int
    data: bytes


class _Peer(NamedTuple):
    """Another instance, or this one: its names, its address."""

    names: tuple[str, ...]
    host: str
    port: int


class _Programs(NamedTuple):
    """What there is to run.

    Attributes:
        sshd: the server; empty where there is none.
        session: what ours starts sessions with; empty where the server is the image's.
        ssh: the image's own client, where ours is missing; empty otherwise.
        path: a folder to stand first in PATH; empty for none.
        shell: of sessions; empty where the image has none.
    """

    sshd: str
    session: str
    ssh: str
    path: str
    shell: str


class _State(NamedTuple):
    """What is wanted and what is there."""

    wanted: Mapping[str, _File]
    found: Mapping[str, tuple[FileStat | None, bytes | None]]
    running: bool
    complaints: tuple[str, ...]


@define
class SshSetup(StateModule):
    """Start an sshd with the keys of the job and of its user, and name the other instances.

    Everything is in ``run/ssh`` on the shared volume: configuration, host key, the job's key, the
    aliases ``<role>-<index>``. Nothing of the image is edited. Keys alone let anybody in.
    """

    phases = ("runtime",)
    privileges = "any user: root lets root in, everybody else themselves, on a port above 1024"
    example = "ssh_setup: {jobssh: true}"
    tools: ClassVar[tuple[str, ...]] = ("sshd", "ssh-session", "ssh/ssh", "ssh/scp", "ssh/sftp")

    jobssh: Any = arg(
        "Whether the instances of the job may reach each other by ssh.", default=False
    )
    userssh: Any = arg("Keys of people: {type: custom, value: public keys}.", default=None)
    saved_keys: Any = arg("Keys that the user keeps: a list of {value: public keys}.", default=None)
    private_key: Secret | None = arg("The job's private key.", default=None)
    public_key: str | None = arg("The public key that belongs to it.", default=None)

    def require(self) -> Iterator[str]:
        """A pair has two halves."""
        if (self.private_key is None) != (not self.public_key):
            yield "'private_key' and 'public_key' go together"

    def probe(self, ctx: Context) -> _State:
        """What should stand there, what does, and whether the sshd runs."""
        complaints: list[str] = []
        people = self._keys_of_people(ctx, complaints)
        job_ssh = _is_true(self.jobssh)
        if not job_ssh and not people:
            if complaints:
                raise Skip(f"nobody could log in: {'; '.join(complaints)}")
            raise Skip("neither keys of people nor ssh between the instances are asked for")
        programs = _programs(ctx)
        port = ctx.env.get("PAI_CONTAINER_SSH_PORT", "")
        if not port.isdigit():
            said = "this instance has no port with the label ssh (PAI_CONTAINER_SSH_PORT)"
            if job_ssh:
                raise Permanent(said, hint="give the role's resourcePerInstance.ports a label ssh")
            raise Skip(said)
        pair = self._pair(ctx, complaints) if job_ssh else None
        peers = list(_peers(ctx, complaints)) if job_ssh else []
        wanted = dict(_files(ctx, programs, int(port), pair, people, peers))
        folder = _folder(ctx)
        found = {}
        for name in wanted:
            path = os.path.join(folder, name)
            there = ctx.stat(path)
            is_file = there is not None and there.kind == "file"
            found[name] = (there, ctx.read_file(path, _MAX_CLUSTER) if is_file else None)
        return _State(wanted, found, _runs(ctx), tuple(complaints))

    def plan(self, state: _State) -> Verdict:
        """Compare every file, and look for the sshd."""
        wrong = _wrong(state)
        if not wrong and state.running:
            return no_change("it runs, with these keys and aliases")
        parts = [f"write {', '.join(wrong)}"] if wrong else []
        return will_change(" and ".join([*parts, *([] if state.running else ["start sshd"])]))

    def apply(self, ctx: Context) -> Result:
        """Write what differs, start the sshd, and wait until it answers."""
        state = self.probe(ctx)
        for line in state.complaints:
            ctx.log(line)
        folder, port = _folder(ctx), int(ctx.env["PAI_CONTAINER_SSH_PORT"])
        for part in ("", "empty", "bin"):
            ctx.make_dir(os.path.join(folder, part))
            ctx.set_mode(os.path.join(folder, part), 0o755)
        for name in _wrong(state):
            wanted = state.wanted[name]
            ctx.write_file(os.path.join(folder, name), wanted.data, wanted.mode)
        programs = _programs(ctx)
        if not state.running:
            _start(ctx, programs, port)
        values = {"port": port, "config": os.path.join(folder, "config")}
        path = _path(ctx, programs)
        changed = {"PATH": path} if path != ctx.env.get("PATH") else {}
        return Result(values=values, environment=changed, message=f"sshd answers on port {port}")

    # --- keys ---

    def _keys_of_people(self, ctx: Context, complaints: list[str]) -> list[str]:
        """The lines of authorized_keys; OpenPAI asks for them by giving userssh a type."""
        given = self.userssh if isinstance(self.userssh, Mapping) else {}
        if not given.get("type"):
            return []
        texts = [
            (f"saved key {number}", entry.get("value"))
            for number, entry in enumerate(self.saved_keys or (), 1)
            if isinstance(entry, Mapping)
        ]
        value = given.get("value")
        if given["type"] == "system" and value:
            path = os.path.join(ctx.pai_dir, "ssh-secret", os.path.basename(str(value)))
            data = ctx.read_file(path)
            if data is None:
                complaints.append(f"there is no {path}, of which userssh takes keys")
            texts.append((path, (data or b"").decode(errors="replace")))
        else:
            texts.append(("userssh.value", value))
        found: dict[str, str] = {}
        for where, text in texts:
            for key, line in public_keys(str(text or ""), where, complaints):
                found.setdefault(key, line)
        return list(found.values())

    def _pair(self, ctx: Context, complaints: list[str]) -> tuple[bytes, str] | None:
        """The job's key pair: the user's, the platform's, or one that every instance can make."""
        mounted = os.path.join(ctx.pai_dir, "ssh-secret")
        if self.private_key is not None:
            private, public = self.private_key.reveal(), self.public_key or ""
        else:
            found = [
                ctx.read_file(os.path.join(mounted, name), 64 * 1024)
                for name in ("ssh-privatekey", "ssh-publickey")
            ]
            private, public = ((each or b"").decode(errors="replace") for each in found)
        if private.strip() and public.strip():
            wrong: list[str] = []
            lines = [line for _, line in public_keys(public, "the job's public key", wrong)]
            if not lines:
                raise Permanent(f"the key pair of the job cannot be used: {'; '.join(wrong)}")
            text = "\n".join(private.strip().splitlines()) + "\n"
            return text.encode(), lines[0]
        seed = _shared_seed(ctx)
        if seed is None and sum(1 for _ in _instances(ctx)) < 2:
            seed = _own_seed(ctx)
        if seed is None:
            complaints.append(
                "there is no key pair for the job: each instance lets in people alone"
            )
            return None
        return ed25519_pair(_made_of(seed, b"the job"), _COMMENT)


def public_keys(text: str, where: str, complaints: list[str]) -> Iterator[tuple[str, str]]:
    """The keys in a text, each as its type and content, and as its line in authorized_keys.

    What is no key is left out and told. Options in front of a key (sshd(8), AUTHORIZED_KEYS) are
    not taken: some run programs.

    Args:
        text: one key a line, or several; with any line ends.
        where: what the text is, for complaints.
        complaints: takes one sentence for each line that is left out.
    """
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        words = "".join(c if c.isprintable() else " " for c in line).split()
        if not words or words[0].startswith("#"):
            continue
        starts = [i for i, w in enumerate(words[:-1]) if _is_key(w, words[i + 1])]
        if starts and starts[0] == 0:
            for start, end in zip(starts, [*starts[1:], len(words)], strict=True):
                part = words[start:end]
                yield " ".join(part[:2]), " ".join(part)
            continue
        # Never the line itself: it may be a private key.
        if starts:
            why = "has options in front of the key, which are not allowed here"
        elif "PRIVATE" in line:
            why = "is a part of a private key: keep that to yourself, and give the public one"
        elif words[0] in _KEY_TYPES:
            why = f"begins as a key of type {words[0]}, but what follows is none"
        else:
            why = "is no public key"
        complaints.append(f"{where}, line {number}: it {why}; left out")
        if "PRIVATE" in line:
            return


def _is_key(kind: str, content: str) -> bool:
    """Whether two words are a key: the content names the type once more (RFC 4253, 6.6)."""
    if kind not in _KEY_TYPES:
        return False
    try:
        data = base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        return False
    name = kind.encode()
    return data.startswith(_string(name)) and len(data) > 4 + len(name) + 32


def _shared_seed(ctx: Context) -> bytes | None:
    """The secret that the platform gives every instance of the job, or None."""
    text = ctx.read_file(os.path.join(ctx.pai_dir, "rendezvous", "key"), 4096)
    try:
        key = base64.b64decode((text or b"").strip(), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    return key if len(key) >= 16 else None


def _own_seed(ctx: Context) -> bytes:
    """Random bytes of this instance, which stay the same from one run to the next."""
    found = ctx.read_file(os.path.join(_folder(ctx), "seed"), 64)
    if found is not None and len(found) == 32:
        return found
    # The same within one run, too: `apply` probes anew.
    return _SEEDS.setdefault(_folder(ctx), os.urandom(32))


_SEEDS: dict[str, bytes] = {}


def _made_of(seed: bytes, purpose: bytes) -> bytes:
    """32 bytes for one purpose: HKDF with SHA-256 (RFC 5869), no salt, one block."""
    secret = hmac.digest(bytes(32), seed, "sha256")
    return hmac.digest(secret, b"pairun ssh key of " + purpose + b"\x01", "sha256")


# --- Ed25519 (RFC 8032, 5.1): a public key of a seed --------------------------------------------------

_P = 2**255 - 19
_D = -121665 * pow(121666, _P - 2, _P) % _P
_BASE_X = 15112221349535400772501151409588531511454012693041857206046113283949847762202
_BASE_Y = 46316835694926478169428394003475163141307993866256225615783033603165251855960
_Point = tuple[int, int, int, int]


def _add(a: _Point, b: _Point) -> _Point:
    low, high = (a[1] - a[0]) * (b[1] - b[0]) % _P, (a[1] + a[0]) * (b[1] + b[0]) % _P
    c, d = 2 * a[3] * b[3] * _D % _P, 2 * a[2] * b[2] % _P
    e, f, g, h = high - low, d - c, d + c, high + low
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def ed25519_public(seed: bytes) -> bytes:
    """The public key of 32 secret bytes."""
    import hashlib  # OpenSSL comes with it, and few tasks need it

    digest = hashlib.sha512(seed).digest()
    factor = int.from_bytes(digest[:32], "little") & (2**254 - 8) | 2**254
    point: _Point = (_BASE_X, _BASE_Y, 1, _BASE_X * _BASE_Y % _P)
    total: _Point = (0, 1, 1, 0)
    while factor:
        if factor & 1:
            total = _add(total, point)
        point = _add(point, point)
        factor >>= 1
    inverse = pow(total[2], _P - 2, _P)
    x, y = total[0] * inverse % _P, total[1] * inverse % _P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def ed25519_pair(seed: bytes, comment: str) -> tuple[bytes, str]:
    """A key pair of 32 secret bytes: the private key's file, the public key's line.

    The file is OpenSSH's own format, not encrypted (PROTOCOL.key of OpenSSH).
    """
    public, kind = ed25519_public(seed), b"ssh-ed25519"
    content = _string(kind) + _string(public)
    # The two equal numbers in front tell a reader that it was decrypted rightly.
    inner = bytes(8) + content + _string(seed + public) + _string(comment.encode())
    inner += bytes(range(1, 1 + -len(inner) % 8))
    whole = b"openssh-key-v1\0" + 2 * _string(b"none") + _string(b"") + struct.pack(">I", 1)
    text = base64.b64encode(whole + _string(content) + _string(inner)).decode()
    lines = [text[i : i + 70] for i in range(0, len(text), 70)]
    name = "OPENSSH PRIVATE KEY"
    file = "\n".join([f"-----BEGIN {name}-----", *lines, f"-----END {name}-----", ""])
    return file.encode(), f"ssh-ed25519 {base64.b64encode(content).decode()} {comment}"


def _string(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


# --- the job's instances -----------------------------------------------------------------------------


def _instances(ctx: Context) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Role and instance of every task of the job."""
    path = os.path.join(ctx.pai_dir, "runtime.d", "cluster.json")
    try:
        roles = json.loads(ctx.read_file(path, _MAX_CLUSTER) or b'{"roles": []}')["roles"]
        for role in roles:
            for instance in role["instances"]:
                yield role, instance
    except (ValueError, KeyError, TypeError) as e:
        raise Permanent(f"{path} is not what init writes: {e!r}", fault="platform") from e


def _peers(ctx: Context, complaints: list[str]) -> Iterator[_Peer]:
    """Every instance that has an address and a port for ssh, with names that nobody else has."""
    taken: set[str] = set()
    unknown = 0
    for role, instance in _instances(ctx):
        ports = (instance.get("ports") or {}).get("ssh") or ()
        if not re.fullmatch(r"[\w.:%-]+", instance.get("host_ip") or "") or not ports:
            unknown += 1
            continue
        names = dict.fromkeys(f"{role[n]}-{instance['index']}" for n in ("fc_name", "name"))
        free = tuple(n for n in names if n not in taken and re.fullmatch(r"[\w.~+-]+", n))
        if len(free) < len(names):
            left = ", ".join(n for n in names if n not in free)
            complaints.append(f"the alias {left} is somebody else's already, or no name for ssh")
        taken.update(free)
        if free:
            yield _Peer(free, str(instance["host_ip"]), int(ports[0]))
    if unknown:
        complaints.append(f"{unknown} instances have no address for ssh yet, and no alias")


# --- files -------------------------------------------------------------------------------------------


def _folder(ctx: Context) -> str:
    return os.path.join(ctx.pai_dir, "run", "ssh")


def _files(
    ctx: Context,
    programs: _Programs,
    port: int,
    pair: tuple[bytes, str] | None,
    people: Iterable[str],
    peers: Iterable[_Peer],
) -> Iterator[tuple[str, _File]]:
    """Every file of ours with its mode and content."""
    folder = _folder(ctx)
    seed = _own_seed(ctx)
    yield "seed", _File(0o600, seed)
    yield "host_key", _File(0o600, ed25519_pair(_made_of(seed, b"the host"), "host")[0])
    lines = dict.fromkeys(people)
    if pair is not None:
        yield "id", _File(0o600, pair[0])
        yield "id.pub", _File(0o644, f"{pair[1]}\n".encode())
        known = {" ".join(line.split()[:2]) for line in lines}
        if " ".join(pair[1].split()[:2]) not in known:
            lines = {pair[1]: None, **lines}
    yield "authorized_keys", _File(0o644, "".join(f"{line}\n" for line in lines).encode())
    yield "config", _File(0o644, _client_config(folder, peers, programs).encode())
    yield "sshd_config", _File(0o644, _server_config(ctx, folder, programs, port).encode())
    yield "session", _File(0o600, _session(ctx, folder, programs))
    yield "probe", _File(0o644, _PROBE.encode())
    if programs.ssh:
        for name in ("ssh", "scp", "sftp"):
            if own_program := ctx.which(name):
                text = f'#!/bin/sh\nexec {own_program} -F {folder}/config "$@"\n'
                yield f"bin/{name}", _File(0o755, text.encode())


def _client_config(folder: str, peers: Iterable[_Peer], programs: _Programs) -> str:
    out = ["# The instances of this job. What ~/.ssh/config says counts more."]
    if programs.ssh:
        # Given with -F, it must itself name what ssh would read otherwise.
        out.append("Include ~/.ssh/config")
    for peer in peers:
        out += [
            f"Host {' '.join(peer.names)}",
            f"  HostName {peer.host}",
            f"  Port {peer.port}",
            "  User root",
            f"  IdentityFile {folder}/id",
            "  IdentitiesOnly yes",
            # The default since OpenSSH 9.0 takes ten times the time of everything else in a login.
            "  KexAlgorithms curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256",
            "  StrictHostKeyChecking no",
            "  UserKnownHostsFile /dev/null",
            "  LogLevel ERROR",
        ]
    if programs.ssh:
        out += ["Host *", "Include /etc/ssh/ssh_config"]
    return "\n".join(out) + "\n"


def _server_config(ctx: Context, folder: str, programs: _Programs, port: int) -> str:
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
        # The volume belongs to whom the platform says.
        "StrictModes": "no",
        "UseDNS": "no",
        "X11Forwarding": "no",
        "PrintMotd": "no",
        "AcceptEnv": "LANG LC_*",
        "LoginGraceTime": 60,
        # mpirun logs in to many hosts at once, each of which logs in to others.
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


def _session(ctx: Context, folder: str, programs: _Programs) -> bytes:
    """The shell, then the environment of sessions: this task's, which is the container's."""
    env = {
        **{name: value for name, value in ctx.env.items() if name not in _NOT_PASSED},
        "PATH": _path(ctx, programs),
        "PAIRUN_SSH_DIR": folder,
    }
    entries = [programs.shell, *(f"{name}={value}" for name, value in sorted(env.items()))]
    return b"".join(each.encode("utf-8", "surrogateescape") + b"\0" for each in entries)


def _path(ctx: Context, programs: _Programs) -> str:
    known = ctx.env.get("PATH") or os.defpath
    if not programs.path or programs.path in known.split(os.pathsep):
        return known
    return f"{programs.path}{os.pathsep}{known}"


def _wrong(state: _State) -> list[str]:
    return [
        name
        for name, wanted in state.wanted.items()
        if state.found[name][1] != wanted.data
        or (there := state.found[name][0]) is None
        or there.mode != wanted.mode
    ]


# --- programs ----------------------------------------------------------------------------------------


def _programs(ctx: Context) -> _Programs:
    """The tools that init left, or what the image has in their place."""
    tools = os.path.join(ctx.pai_dir, "tools")
    sshd, session = os.path.join(tools, "sshd"), os.path.join(tools, "ssh-session")
    if ctx.stat(sshd) is not None and ctx.stat(session) is not None:
        own = (sshd, session)
    else:
        places = (ctx.which("sshd"), "/usr/sbin/sshd", "/usr/local/sbin/sshd")
        own = (next((p for p in places if p and ctx.stat(p) is not None), ""), "")
    shell = _shell(ctx)
    if ctx.stat(os.path.join(tools, "ssh", "ssh")) is not None:
        return _Programs(*own, "", os.path.join(tools, "ssh"), shell)
    wrapped = os.path.join(_folder(ctx), "bin")
    known = [p for p in (ctx.env.get("PATH") or os.defpath).split(os.pathsep) if p != wrapped]
    ssh = next((p for d in known if ctx.stat(p := os.path.join(d, "ssh")) is not None), "")
    return _Programs(*own, ssh, wrapped if ssh else "", shell)


def _shell(ctx: Context) -> str:
    """The user's own shell where it is one, else bash, else sh."""
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


def _runs(ctx: Context) -> bool:
    """Whether the sshd of this folder runs; it writes its number once it listens."""
    folder = _folder(ctx)
    pid = (ctx.read_file(os.path.join(folder, "sshd.pid"), 64) or b"").strip()
    if not pid.isdigit():
        return False
    command = ctx.read_file(f"/proc/{int(pid)}/cmdline", 64 * 1024) or b""
    return f"{folder}/sshd_config".encode() in command


def _start(ctx: Context, programs: _Programs, port: int) -> None:
    """Start the sshd and wait until it answers.

    Raises:
        Permanent: there is none, or it cannot let anybody in.
        Conflict: something else holds the port.
        Transient: it does not answer.
    """
    folder = _folder(ctx)
    if not programs.sshd:
        raise Permanent(
            "there is no sshd: neither did init leave one, nor has the image one",
            fault="platform",
            hint="build pairun's image with its tools, or install openssh-server in your own",
        )
    if holder := ctx.port_taken(port):
        raise Conflict(f"port {port}, which is for ssh, is taken: {holder}", fault="platform")
    if not programs.session:
        _prepare_image_sshd(ctx)
    log, config = os.path.join(folder, "sshd.log"), os.path.join(folder, "sshd_config")
    env = {"PAIRUN_SSH_SHELL": programs.session, "PAIRUN_SSH_EMPTY": os.path.join(folder, "empty")}
    done = ctx.run([programs.sshd, "-f", config, "-E", log], env=env if programs.session else {})
    end = ctx.now() + _START_S
    while done.code == 0 and ctx.now() < end:
        if _runs(ctx):
            return
        ctx.sleep(_LOOK_S)
    said = (ctx.read_file(log) or b"").decode(errors="replace").strip().splitlines()
    last = said[-1] if said else "nothing"
    ended = f", and ended with {done.code}" if done.code else ""
    raise Transient(f"sshd does not listen on port {port}{ended}; the last that it said: {last}")


def _prepare_image_sshd(ctx: Context) -> None:
    """What an sshd of a distribution needs besides its configuration."""
    ctx.log("the sshd is the image's own: init left none")
    if os.getuid() == 0:
        ctx.make_dir("/run/sshd")
        return
    users = (ctx.read_file("/etc/passwd") or b"").decode(errors="replace").splitlines()
    if not any(line.split(":")[2:3] == [str(os.getuid())] for line in users):
        raise Permanent(
            f"the user {os.getuid()} has no entry in the image's /etc/passwd, and its sshd lets in "
            "nobody without one",
            fault="user",
            hint="add the user to the image",
        )


def _is_true(value: Any) -> bool:
    return value is True or (isinstance(value, str) and value.strip().lower() == "true")

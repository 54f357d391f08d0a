"""The keys of people and of the job: OpenSSH's formats, and Ed25519 (RFC 8032, 5.1)."""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import re
import struct
from collections.abc import Iterator, Mapping
from typing import Any

from pairun.module import Context, Permanent, Secret, job_instances

from .server import ssh_folder

_KEY_TYPES = (
    "ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com",
)  # fmt: skip
_COMMENT = "pai-job-ssh"
_SEEDS: dict[str, bytes] = {}
_P = 2**255 - 19
_D = -121665 * pow(121666, _P - 2, _P) % _P
_BASE_X = 15112221349535400772501151409588531511454012693041857206046113283949847762202
_BASE_Y = 46316835694926478169428394003475163141307993866256225615783033603165251855960
_Point = tuple[int, int, int, int]


def public_keys(text: str, where: str, complaints: list[str]) -> Iterator[tuple[str, str]]:
    """The keys in a text, each as its type and content, and as its line in authorized_keys.

    Rejects options in front of a key (sshd(8), AUTHORIZED_KEYS): some run programs.

    Args:
        text: one or several lines, one key each; with any line ends.
        where: the name of the text in complaints.
        complaints: gets one sentence for each omitted line.
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
            why = "is part of a private key: keep it secret, and give the public key"
        elif words[0] in _KEY_TYPES:
            why = f"begins as a key of type {words[0]}, but the rest is not one"
        else:
            why = "is not a public key"
        complaints.append(f"{where}, line {number}: it {why}; left out")
        if "PRIVATE" in line:
            return


def _is_key(kind: str, content: str) -> bool:
    """Whether two words are a key: the content repeats the type (RFC 4253, 6.6)."""
    if kind not in _KEY_TYPES:
        return False
    try:
        data = base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        return False
    name = kind.encode()
    return data.startswith(ssh_string(name)) and len(data) > 4 + len(name) + 32


def keys_of_people(ctx: Context, userssh: Any, saved_keys: Any, complaints: list[str]) -> list[str]:
    """The lines of authorized_keys; OpenPAI requests them by a type in userssh.

    Args:
        complaints: gets one sentence for each omitted line.
    """
    settings = userssh if isinstance(userssh, Mapping) else {}
    if not settings.get("type"):
        return []
    texts = [
        (f"saved key {number}", entry.get("value"))
        for number, entry in enumerate(saved_keys or (), 1)
        if isinstance(entry, Mapping)
    ]
    value = settings.get("value")
    if settings["type"] == "system" and value:
        path = os.path.join(ctx.pai_dir, "ssh-secret", os.path.basename(str(value)))
        data = ctx.read_file(path)
        if data is None:
            complaints.append(f"there is no {path}, from which userssh reads keys")
        texts.append((path, (data or b"").decode(errors="replace")))
    else:
        texts.append(("userssh.value", value))
    lines: dict[str, str] = {}
    for where, text in texts:
        for key, line in public_keys(str(text or ""), where, complaints):
            lines.setdefault(key, line)
    return list(lines.values())


def _shared_seed(ctx: Context) -> bytes | None:
    """The secret that every instance of the job gets from the platform, or None."""
    text = ctx.read_file(os.path.join(ctx.pai_dir, "rendezvous", "key"), 4096)
    try:
        key = base64.b64decode((text or b"").strip(), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    return key if len(key) >= 16 else None


def own_seed(ctx: Context) -> bytes:
    """Random bytes of this instance; they stay the same in later runs."""
    seed = ctx.read_file(os.path.join(ssh_folder(ctx), "seed"), 64)
    if seed is not None and len(seed) == 32:
        return seed
    # `apply` probes again, and must find the same bytes.
    return _SEEDS.setdefault(ssh_folder(ctx), os.urandom(32))


def derived(seed: bytes, purpose: bytes) -> bytes:
    """32 bytes for one purpose: HKDF with SHA-256 (RFC 5869), no salt, one block."""
    secret = hmac.digest(bytes(32), seed, "sha256")
    return hmac.digest(secret, b"pairun ssh key of " + purpose + b"\x01", "sha256")


def job_pair(
    ctx: Context, private_key: Secret | None, public_key: str | None, complaints: list[str]
) -> tuple[bytes, str] | None:
    """The job's key pair: the user's, the platform's, or one that every instance can derive.

    Args:
        complaints: gets a sentence if there is no pair.

    Raises:
        Permanent: the public key is invalid.
    """
    private, public = _given_pair(ctx, private_key, public_key)
    if private.strip() and public.strip():
        problems: list[str] = []
        lines = [line for _, line in public_keys(public, "the job's public key", problems)]
        if not lines:
            raise Permanent(f"the key pair of the job cannot be used: {'; '.join(problems)}")
        text = "\n".join(private.strip().splitlines()) + "\n"
        return text.encode(), lines[0]
    seed = _shared_seed(ctx)
    if seed is None and len(job_instances(ctx)) < 2:
        seed = own_seed(ctx)
    if seed is None:
        complaints.append(
            "there is no key pair for the job: only users can log in to the instances"
        )
        return None
    return ed25519_pair(derived(seed, b"the job"), _COMMENT)


def _given_pair(
    ctx: Context, private_key: Secret | None, public_key: str | None
) -> tuple[str, str]:
    """The user's pair, or the one that the platform mounts; empty if there is none."""
    if private_key is not None:
        return private_key.reveal(), public_key or ""
    mounted = os.path.join(ctx.pai_dir, "ssh-secret")
    private, public = (
        (ctx.read_file(os.path.join(mounted, name), 64 * 1024) or b"").decode(errors="replace")
        for name in ("ssh-privatekey", "ssh-publickey")
    )
    return private, public


# --- Ed25519 -------------------------------------------------------------------------------------


def _add(a: _Point, b: _Point) -> _Point:
    low, high = (a[1] - a[0]) * (b[1] - b[0]) % _P, (a[1] + a[0]) * (b[1] + b[0]) % _P
    c, d = 2 * a[3] * b[3] * _D % _P, 2 * a[2] * b[2] % _P
    e, f, g, h = high - low, d - c, d + c, high + low
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def ed25519_public(seed: bytes) -> bytes:
    """The public key of 32 secret bytes."""
    import hashlib  # imports OpenSSL, which few tasks need

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
    content = ssh_string(kind) + ssh_string(public)
    # The two equal numbers at the start show a reader that it decrypted correctly.
    inner = bytes(8) + content + ssh_string(seed + public) + ssh_string(comment.encode())
    inner += bytes(range(1, 1 + -len(inner) % 8))
    whole = b"openssh-key-v1\0" + 2 * ssh_string(b"none") + ssh_string(b"") + struct.pack(">I", 1)
    text = base64.b64encode(whole + ssh_string(content) + ssh_string(inner)).decode()
    lines = [text[i : i + 70] for i in range(0, len(text), 70)]
    name = "OPENSSH PRIVATE KEY"
    file = "\n".join([f"-----BEGIN {name}-----", *lines, f"-----END {name}-----", ""])
    return file.encode(), f"ssh-ed25519 {base64.b64encode(content).decode()} {comment}"


def ssh_string(data: bytes) -> bytes:
    """A string in the encoding of ssh (RFC 4251, 5)."""
    return struct.pack(">I", len(data)) + data

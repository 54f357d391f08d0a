"""Ed25519 key pairs in OpenSSH's format (RFC 8032, 5.1; PROTOCOL.key of OpenSSH)."""

from __future__ import annotations

import base64
import struct

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

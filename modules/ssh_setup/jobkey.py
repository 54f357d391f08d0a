"""The key pair of the job, and the secret bytes from which keys derive."""

from __future__ import annotations

import base64
import binascii
import hmac
import os

from pairun.module import Context, Permanent, Secret

from .ed25519 import ed25519_pair
from .keys import public_keys
from .layout import ssh_folder
from .peers import instances

_COMMENT = "pai-job-ssh"
_SEEDS: dict[str, bytes] = {}


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
    if seed is None and sum(1 for _ in instances(ctx)) < 2:
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

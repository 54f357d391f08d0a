"""Check that a container image exists and may be pulled."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from pairun.module import (
    CheckModule,
    Context,
    Duration,
    FailureKind,
    Permanent,
    Result,
    Secret,
    Skip,
    arg,
    define,
)

from .platforms import KNOWN_PLATFORM, parse_platform
from .reference import HUB, HUB_NAMES, host_of, parse_reference

_Policy = Literal["off", "warn", "fail"]

# The part of an attempt's time that is reserved for the module's message.
_RESERVE_S = 1.0


@define
class ImageCheck(CheckModule):
    """Check in the registry that an image exists and that the job may pull it.

    Only a definite answer fails the task: the image does not exist, or the registry refuses the
    job's login. Any other answer is unknown: pairun retries
    the task, and then ignores it. pairun requests the manifest with HEAD, which no registry counts as
    a pull; only `platform` needs the manifest itself.

    pairun sends credentials only to their registry and to the token service that it names. It uses
    TLS, unless the registry itself has none.
    """

    phases = ("init",)
    privileges = "network"
    asks_servers = True
    example = "image_check: {image: 'ghcr.io/team/train:1.0', policy: warn}"

    image: str = arg("The image, as for a container engine.")
    auth: dict[str, str | Secret | None] | None = arg(
        "The login: username, password, and registry (Docker Hub by default).", default=None
    )
    policy: _Policy = arg(
        "If the image cannot be pulled: fail, warn (the task is ignored), or off (no check).",
        default="fail",
    )
    registries: dict[str, _Policy] | None = arg(
        "Policies by registry (HOST or HOST:PORT, with *); the first match overrides 'policy'.",
        default=None,
    )
    platform: str | None = arg(
        "Also check the platform: OS/ARCHITECTURE[/VARIANT], or 'node' for this machine.",
        default=None,
    )
    tries: int | None = arg("Use the task's 'retries'.", default=None, replaced_by="retries")
    timeout: Duration = arg("The time limit of all requests of an attempt.", default=Duration(30.0))

    def require(self) -> Iterator[str]:
        """Keys are known, and there is something to do."""
        for key in self.auth or {}:
            if key not in ("username", "password", "registry"):
                yield f"'auth' has username, password and registry, not '{key}'"
        for pattern in self.registries or {}:
            if not re.fullmatch(r"[A-Za-z0-9.:*\[\]-]+", pattern):
                yield f"'registries' has HOST or HOST:PORT, with *, not '{pattern}'"
        platform = "node" if self.platform is None else self.platform
        if platform != "node" and not KNOWN_PLATFORM.fullmatch(str(parse_platform(platform))):
            yield f"'platform' is like linux/amd64 or linux/arm/v7, or node, not '{self.platform}'"
        if self.timeout <= 0:
            yield "'timeout' must be more than 0s"

    @property
    def harmless(self) -> frozenset[FailureKind]:
        """Unknown never fails a job; under ``warn`` a definite no does not either."""
        unknown: frozenset[FailureKind] = frozenset({"transient", "timeout"})
        return unknown | {"permanent"} if self._effective_policy() == "warn" else unknown

    def check(self, ctx: Context) -> Result:
        """Ask the registry once.

        Raises:
            Permanent: the name is invalid, the image does not exist, or this job may not pull it.
            Transient: the registry does not respond, or its response says nothing about the image.
            TimedOut: it does not respond in time.
            Skip: the policy is ``off``, or only the node can know.
        """
        if self._effective_policy() == "off":
            raise Skip("the policy is off")
        try:
            reference = parse_reference(self.image)
        except ValueError as e:
            raise Permanent(
                str(e), fault="user", hint="write [HOST[:PORT]/]PATH[:TAG][@DIGEST]"
            ) from None
        remaining_s = ctx.remaining_s()
        limit_s = float(self.timeout)
        if remaining_s is not None:
            limit_s = min(limit_s, remaining_s - _RESERVE_S)
        # Imported here: a review loads this file, too.
        from .registry import Conversation

        conversation = Conversation(ctx, reference, self.auth or {}, ctx.now() + limit_s)
        conversation.require_image()
        if self.platform is None:
            return Result(message=f"{reference} exists")
        conversation.require_platform(parse_platform(self.platform))
        return Result(message=f"{reference} exists for {self.platform}")

    def _effective_policy(self) -> _Policy:
        """The operator's policy for the registry, else `policy`."""
        try:
            registry = parse_reference(self.image).registry.lower()
        except ValueError:
            return self.policy
        names = HUB_NAMES if registry == HUB else (registry, host_of(registry))
        for pattern, policy in (self.registries or {}).items():
            glob = ".*".join(map(re.escape, pattern.lower().split("*")))
            if any(re.fullmatch(glob, n) for n in names):
                return policy
        return self.policy

"""Asks an image's registry for its command, with the user's login."""

from __future__ import annotations

import base64
import binascii
import importlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from pairun.base.foreignjson import parse_json
from pairun.base.paths import pai_dir
from pairun.contract.loading import load_module
from pairun.contract.sources import built_in_modules
from pairun.errors import PairunError
from pairun.host.context import HostContext
from pairun.inject.options import ImageCommand
from pairun.module import Failure, Secret
from pairun.secrets.vault import Vault

MODULE = "image_check"
"""The module that talks to registries."""
_ASK_S = 60.0
HELPER_S = 30.0
_MAX_BYTES = 4 << 20
_HUB = ("docker.io", "index.docker.io", "registry-1.docker.io")
_HUB_KEY = "https://index.docker.io/v1/"
"""The name of Docker Hub in Docker's file."""


class Registries:
    """Asks registries, each image once.

    Args:
        env: names proxies, authorities and Docker's folder.
    """

    def __init__(self, env: Mapping[str, str], vault: Vault) -> None:
        self._env = env
        self._vault = vault
        folder = env.get("DOCKER_CONFIG") or os.path.expanduser("~/.docker")
        self._path = os.path.join(folder, "config.json")
        self._answers: dict[tuple[str, ...], ImageCommand] = {}

    def ask(self, image: str, architectures: Sequence[str] = ()) -> ImageCommand:
        """Ask for the command of an image.

        Raises:
            PairunError: the image's name is invalid, or the registry does not answer.
        """
        asked = (image, *architectures)
        if asked not in self._answers:
            self._answers[asked] = self._ask(image, architectures)
        return self._answers[asked]

    def _ask(self, image: str, architectures: Sequence[str]) -> ImageCommand:
        # Load the module by name, as everywhere: pairun's packages do not depend on modules' files.
        package = load_module(MODULE, built_in_modules()[MODULE]).__module__
        reference_file = importlib.import_module(f"{package}.reference")
        registry_file = importlib.import_module(f"{package}.registry")
        try:
            reference = reference_file.parse_reference(image)
        except ValueError as e:
            raise PairunError.of("PR821", f"'{image}' is not an image: {e}") from e
        ctx = HostContext(self._env, pai_dir())
        login = self._login(reference.registry)
        conversation = registry_file.Conversation(ctx, reference, login, ctx.now() + _ASK_S)
        try:
            entrypoint, cmd, digest = conversation.command(architectures)
        except Failure as e:
            way = "give the command with --entrypoint COMMAND"
            hint = f"{way}; {e.hint}" if e.hint else way
            message = f"the command of {image} is unknown: {e.message}"
            raise PairunError.of("PR821", message, hint=hint) from e
        name = image.partition("@")[0].strip()
        return ImageCommand(entrypoint, cmd, f"{name}@{digest}")

    def _login(self, registry: str) -> dict[str, str | Secret | None]:
        """The user's login for a registry; empty without one."""
        config = self._config()
        names = (_HUB_KEY, *_HUB) if registry in _HUB else (registry, f"https://{registry}")
        helpers = config.get("credHelpers") or {}
        helper = next((helpers[n] for n in names if n in helpers), config.get("credsStore"))
        if isinstance(helper, str) and helper:
            user, password = _helped(helper, names[0], self._env)
        else:
            auths = config.get("auths") or {}
            user, password = _decoded(next((auths[n] for n in names if n in auths), {}))
        if not (user and password):
            return {}
        self._vault.add([password])
        return {"username": user, "password": Secret(password), "registry": registry}

    def _config(self) -> dict[str, Any]:
        try:
            with open(self._path, "rb") as f:
                config = parse_json(f.read(_MAX_BYTES))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as e:
            # A parser's message may quote a login.
            raise PairunError.of(
                "PR108", f"{self._path} cannot be read: {type(e).__name__}"
            ) from None
        return config if isinstance(config, dict) else {}


def _decoded(entry: Any) -> tuple[str, str]:
    """User and password of an entry of Docker's file."""
    if not isinstance(entry, dict):
        return "", ""
    if entry.get("auth"):
        try:
            text = base64.b64decode(str(entry["auth"]), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return "", ""
        user, _, password = text.partition(":")
        return user, password.rstrip("\0")
    return str(entry.get("username") or ""), str(entry.get("password") or "")


def _helped(helper: str, registry: str, env: Mapping[str, str]) -> tuple[str, str]:
    """User and password from a Docker credential helper (docker-credential-helpers, README)."""
    program = f"docker-credential-{os.path.basename(helper)}"
    try:
        done = subprocess.run(
            [program, "get"], input=registry, env=dict(env), capture_output=True, text=True,
            timeout=HELPER_S, check=True,
        )  # fmt: skip
        answer = parse_json(done.stdout)
        return str(answer["Username"]), str(answer["Secret"])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
        return "", ""

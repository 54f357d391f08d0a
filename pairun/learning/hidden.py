"""Masks secrets in other people's log lines before a line is shown or becomes a sample."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pairun.secrets.shapes import is_secret_key, script_secrets
from pairun.secrets.vault import Vault

_ASSIGNED = re.compile(
    r"""(?<![\w-])["']?([A-Za-z][\w-]{2,60})["']?\s{0,3}[:=]\s{0,3}["']?([^\s,;"'}]{4,500})"""
)
_SCHEME = re.compile(r"(?i)\b(?:bearer|basic)\s+([\w.~+/=-]{8,2000})")
_KNOWN = re.compile(
    r"\b(?:hf_|gh[oprsu]_|github_pat_|glpat-|xox[abp]-|sk-|AKIA|ASIA|ya29\.|eyJ)[\w.-]{8,2000}"
)
"""The prefixes of well-known services' tokens, and of every JSON Web Token (RFC 7519)."""


def without_secrets(text: str, vault: Vault) -> str:
    """A line with its secrets masked.

    Args:
        text: the line.
        vault: the secrets that this process always hides.
    """
    return Vault(_secrets_in(text)).text(vault.text(text))


def _secrets_in(text: str) -> Iterator[str]:
    yield from script_secrets(text)
    for key, value in _ASSIGNED.findall(text):
        if is_secret_key(key):
            yield value
    yield from _SCHEME.findall(text)
    yield from _KNOWN.findall(text)

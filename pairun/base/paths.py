"""Where things stand on the shared volume, for every process of either container."""

from __future__ import annotations

import os
from collections.abc import Mapping

DEFAULT_PAI_DIR = "/usr/local/pai"

MOUNTED = frozenset(
    {"secrets", "user-extension-secrets", "token-secrets", "ssh-secret", "rendezvous", "config"}
)
"""What the platform mounts into the volume; nothing else that stands there counts."""

PLAIN_FILES = "PAIRUN_PLAIN_FILES"
"""Set by an engine that has no mounts and puts what is `MOUNTED` onto a new volume itself."""

JOURNAL = "journal.jsonl"
"""The journal, in the Pod's log directory."""

PROGRAMS = "bin"
"""On the volume: what stands last in the PATH of the user's command."""

PLACE_FILE = "rendezvous.json"
"""On the volume: where the instances of the job meet, and which one this is."""

KEY_FILE = "rendezvous/key"
"""On the volume, where the platform mounts it: by what the instances of the job know each other."""

DIAGNOSIS_FILE = "diagnosis.json"
"""In ``runtime.d``: the rules that say why a command died."""

STATE_FILE = "rendezvous-state.json"
"""In ``runtime.d``: what the job's first instance was told in init, and goes on with."""


def pai_dir() -> str:
    """The shared volume: `DEFAULT_PAI_DIR` unless ``PAIRUN_PAI_DIR`` names another path."""
    return os.environ.get("PAIRUN_PAI_DIR") or DEFAULT_PAI_DIR


def runtime_file(root: str, name: str) -> str:
    """The path of a file that init leaves for the runtime phase.

    Args:
        root: the shared volume.
        name: the file's name in ``runtime.d``.
    """
    return os.path.join(root, "runtime.d", name)


def log_dir(root: str, env: Mapping[str, str]) -> str:
    """The Pod's log directory.

    Args:
        root: the shared volume.
        env: the container's environment.
    """
    return os.path.join(root, "logs", env.get("FC_POD_UID") or "local")


def journal_file(root: str, env: Mapping[str, str]) -> str:
    """The path of the Pod's journal; the arguments are those of `log_dir`."""
    return os.path.join(log_dir(root, env), JOURNAL)

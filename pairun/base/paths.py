"""Paths on the shared volume, for every process of both containers."""

from __future__ import annotations

import os
from collections.abc import Mapping

DEFAULT_PAI_DIR = "/usr/local/pai"

DEFAULT_CONFIG_DIR = "/usr/local/pai-config"
"""Where the platform mounts the settings of a plain Pod, unless ``PAI_CONFIG_DIR`` is set."""

MOUNTED = frozenset(
    {"secrets", "user-extension-secrets", "token-secrets", "ssh-secret", "rendezvous", "config"}
)
"""Names that the platform mounts into the volume; such a file is ignored if it is not mounted."""

PLAIN_FILES = "PAIRUN_PLAIN_FILES"
"""Set by an engine without mounts, which writes the `MOUNTED` files to a new volume itself."""

JOURNAL = "journal.jsonl"
"""The journal, in the Pod's log directory."""

USER_LOGS = ("user-stdout", "user-stderr", "user-all")
"""The folders of the command's output, in the Pod's log directory."""

PROGRAMS = "bin"
"""A folder on the volume; the last one in the PATH of the user's command."""

STARTS_FILE = "run/starts"
"""On the volume: how often PID 1 has started since init last ran."""

GANG_FILE = "gang.json"
"""In ``runtime.d`` of an injected Pod: its gang as a Framework without status, for the barrier."""

CLUSTER_FILE = "cluster.json"
"""In ``runtime.d``: the instances of the job, from init."""

MOVED_FILE = "run/cluster.json"
"""On the volume: the same after a restart of this container, if an instance has moved."""

PLACE_FILE = "rendezvous.json"
"""On the volume: the address of the job's rendezvous, and the rank of this instance."""

KEY_FILE = "rendezvous/key"
"""On the volume, mounted by the platform: the key with which instances authenticate."""

STOP_NOTE = "stopped.json"
"""On the volume of `pairun run`, which has no other reader: why it stopped this instance."""

DIAGNOSIS_FILE = "diagnosis.json.z"
"""In ``runtime.d``: the rules of the failure diagnosis."""

EXIT_SPEC_FILE, EXIT_SPEC_SCHEMA = "exit-spec.json", 1
"""The cluster's exit spec, checked by init, in ``runtime.d``; and the version of its format."""

STATE_FILE = "rendezvous-state.json"
"""In ``runtime.d``: the leader's state from init, which PID 1's server continues."""


def pai_dir() -> str:
    """The shared volume: `DEFAULT_PAI_DIR` unless ``PAIRUN_PAI_DIR`` names another path."""
    return os.environ.get("PAIRUN_PAI_DIR") or DEFAULT_PAI_DIR


def runtime_file(root: str, name: str) -> str:
    """The path of a file that init writes for the runtime phase."""
    return os.path.join(root, "runtime.d", name)


def log_dir(root: str, env: Mapping[str, str]) -> str:
    """The Pod's log directory."""
    return os.path.join(root, "logs", env.get("FC_POD_UID") or "local")


def journal_file(root: str, env: Mapping[str, str]) -> str:
    """The path of the Pod's journal; the arguments are those of `log_dir`."""
    return os.path.join(log_dir(root, env), JOURNAL)


def built_in_folder() -> str:
    """The built-in content root: in a wheel below the package, else the checkout."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    installed = os.path.join(package, "builtin")
    return installed if os.path.isdir(installed) else os.path.dirname(package)

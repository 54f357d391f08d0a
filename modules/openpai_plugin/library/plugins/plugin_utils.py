"""The functions for OpenPAI's plugin programs: their configuration, and the scripts they write."""

from __future__ import annotations

import importlib
import json
import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any

_ARGUMENTS = 4

CACHE = "/opt/package_cache"
"""Packages in the init container, from its image or mounted from the node."""

_COPY = os.path.join(os.getcwd(), "package_cache")
"""The cache in the user's container: programs start on the volume."""


def plugin_init() -> list[Any]:
    """Prepare logging; the configuration, the path of the pre script, and that of the post script."""
    importlib.import_module("common.utils").init_logger()
    if len(sys.argv) != _ARGUMENTS:
        sys.exit(f"usage: {sys.argv[0]} CONFIGURATION PRE_SCRIPT POST_SCRIPT")
    with open(os.environ["PAIRUN_PLUGIN_CONFIG"], encoding="utf-8") as file:
        return [json.load(file), *sys.argv[2:]]


class PluginHelper:
    """Writes the scripts of one plugin.

    Args:
        plugin_config: the plugin's configuration.
    """

    def __init__(self, plugin_config: Mapping[str, Any]) -> None:
        policy = str(plugin_config.get("failurePolicy") or "fail")
        self._ignores_failures = policy.lower() == "ignore"

    def inject_commands(self, commands: Sequence[str], script: str) -> None:
        """Append commands to a script; the first failure ends it unless failures are ignored."""
        if not commands:
            return
        lines = ["set -o errexit", *commands]
        if self._ignores_failures:
            lines = ["set +o errexit", *commands, "set -o errexit"]
        with open(script, "a", encoding="utf-8", errors="surrogateescape") as file:
            file.writelines(f"{line}\n" for line in lines)


def try_to_install_by_cache(group_name: str, fallback_cmds: Sequence[str]) -> str:
    """One command that installs a group of packages: from the cache, else by the fallback.

    A folder ``GROUP-SYSTEM`` of the cache has the packages of a group for one system.
    """
    fallback = "; ".join(fallback_cmds)
    names = os.listdir(CACHE) if os.path.isdir(CACHE) else []
    if not (found := [name for name in names if name.startswith(f"{group_name}-")]):
        return fallback
    for name in found:
        source = os.path.join(CACHE, name)
        shutil.copytree(source, os.path.join(_COPY, name), dirs_exist_ok=True)
    script = shutil.copy(os.path.join(os.path.dirname(__file__), "install_group.sh"), _COPY)
    return f"{shlex.join(['sh', script, group_name])} || {{ {fallback}; }}"

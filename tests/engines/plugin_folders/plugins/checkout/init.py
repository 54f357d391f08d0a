#!/usr/bin/env python3
"""Clones in init beside the folder of plugins, and moves the code in the user's container."""

import os
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from plugins.plugin_utils import PluginHelper, plugin_init

HERE = os.path.dirname(os.path.abspath(__file__))


def main() -> None:
    """Clone, and write what moves the clone."""
    config, pre_script, _ = plugin_init()
    code = os.path.join(HERE, "../../code")
    subprocess.run(["git", "clone", "-q", config["parameters"]["repo_uri"], code], check=True)
    target = config["parameters"].get("clone_dir")
    if target:
        moves = [f"mkdir -p {target}", f"mv {code}/* {target}"]
        PluginHelper(config).inject_commands(moves, pre_script)


if __name__ == "__main__":
    main()

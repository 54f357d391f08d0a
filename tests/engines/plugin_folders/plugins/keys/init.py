#!/usr/bin/env python3
"""Leaves the user's key on the volume, and runs a program of its folder with the public ones."""

from pathlib import Path

from plugins.plugin_utils import PluginHelper, plugin_init, try_to_install_by_cache

config, before, _ = plugin_init()
pair = config["user_extension"].get("jobSSH", {})
if pair:
    Path("./ssh-secret").mkdir(exist_ok=True)
    Path("./ssh-secret/ssh-privatekey").write_text(pair["key"])
public = [k["value"] for k in config["user_extension"].get("sshKeys", [])]
public.append(config["parameters"]["userssh"]["value"])
install = try_to_install_by_cache("ssh", fallback_cmds=["echo update", "echo install"])
program = Path(__file__).resolve().parent / "authorize.sh"
PluginHelper(config).inject_commands(
    [install, "{} '{}'".format(program, "\n".join(public))], before
)

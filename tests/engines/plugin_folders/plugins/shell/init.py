#!/usr/bin/env python3
"""Commands of the job before and after its command."""

from plugins.plugin_utils import PluginHelper, plugin_init

config, pre_script, post_script = plugin_init()
helper = PluginHelper(config)
parameters = config["parameters"] or {}
helper.inject_commands(parameters.get("preCommands", []), pre_script)
helper.inject_commands(parameters.get("postCommands", []), post_script)

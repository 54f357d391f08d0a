#!/usr/bin/env python3
"""A plugin in OpenPAI's form: it greets before the user's command."""

from plugins.plugin_utils import PluginHelper, plugin_init

config, pre_script, post_script = plugin_init()
PluginHelper(config).inject_commands([f"echo hello, {config['parameters']['who']}"], pre_script)

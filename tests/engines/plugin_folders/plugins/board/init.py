#!/usr/bin/env python3
"""Renders a script beside itself, and starts it in the first instance of the first role."""

import os

from plugins.plugin_utils import PluginHelper, plugin_init

FIRST = os.environ["PAI_TASK_ROLE_LIST"].split(",")[0]
here = os.path.dirname(os.path.abspath(__file__))
config, pre_script, _ = plugin_init()
if (
    os.environ["PAI_CURRENT_TASK_ROLE_NAME"] == FIRST
    and int(os.environ["PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"]) == 0
):
    with open(f"{here}/board.sh.template") as template, open(f"{here}/board.sh", "w") as script:
        script.write(template.read().replace("@PORT@", str(config["parameters"]["port"])))
    commands = [f"chmod u+x {here}/board.sh", f"{here}/board.sh"]
    PluginHelper(config).inject_commands(commands, pre_script)

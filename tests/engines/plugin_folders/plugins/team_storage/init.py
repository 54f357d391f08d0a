#!/usr/bin/env python3
"""Reads its parameters, and has nothing to do: the platform mounts the storage."""

import logging

from common.utils import init_logger
from plugins.plugin_utils import plugin_init

init_logger()
configuration, _, _ = plugin_init()
logging.getLogger(__name__).info("no storage is mounted for %s", configuration["plugin"])

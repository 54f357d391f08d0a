"""What plugin programs import as ``plugins``: our helpers first, then the folders of plugins."""

import os

if "PAIRUN_PLUGINS" in os.environ:
    __path__.append(os.environ["PAIRUN_PLUGINS"])

"""The package ``plugins`` for plugin programs: our helpers first, then the plugins' folders."""

import os

if "PAIRUN_PLUGINS" in os.environ:
    __path__.append(os.environ["PAIRUN_PLUGINS"])

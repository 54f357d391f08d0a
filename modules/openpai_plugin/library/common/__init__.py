"""The package ``common`` for plugin programs: ours first, then the one next to their folder."""

import os

if "PAIRUN_PLUGINS" in os.environ:
    __path__.append(os.path.join(os.path.dirname(os.environ["PAIRUN_PLUGINS"]), "common"))

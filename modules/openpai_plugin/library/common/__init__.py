"""What plugin programs import as ``common``: ours first, then what lies beside their folder."""

import os

if "PAIRUN_PLUGINS" in os.environ:
    __path__.append(os.path.join(os.path.dirname(os.environ["PAIRUN_PLUGINS"]), "common"))

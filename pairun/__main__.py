"""``python -m pairun`` is the command ``pairun``."""

from __future__ import annotations

import sys

from pairun.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

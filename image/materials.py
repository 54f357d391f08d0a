"""Writes what an image is made of, as CycloneDX and as SPDX, and the diagnosis's rules as PID 1 reads them.

root.sh calls it with the folder of the image's packages of Python. It runs no program of the target.
"""

from __future__ import annotations

import os
import sys

from pairun.cli.versions import components
from pairun.errors import Problems
from pairun.handover.sbom import document
from pairun.handover.spdx import spdx_document
from pairun.playbook.content import open_content
from pairun.playbook.readyrules import made_rules, packed


def main() -> None:
    """Write the three files into the image's /opt/pairun."""
    system, home, site = sys.argv[1:]
    # Behind the packages of this machine, for pairun's own metadata.
    sys.path.append(site)
    parts = components(image=system)
    created_s = int(os.environ["SOURCE_DATE_EPOCH"])
    problems = Problems()
    rules = made_rules(open_content([], {}), problems)
    if problems:
        sys.exit(f"image: the rules cannot be read: {list(problems)}")
    texts = {
        "sbom.cdx.json": document("pairun", parts),
        "sbom.spdx.json": spdx_document("pairun", parts, created_s),
    }
    for name, text in texts.items():
        with open(os.path.join(home, name), "w", encoding="utf-8") as f:
            f.write(f"{text}\n")
    with open(os.path.join(home, "rules.json.z"), "wb") as rules_file:
        rules_file.write(packed(rules))


if __name__ == "__main__":
    main()

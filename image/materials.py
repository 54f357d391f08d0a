"""Writes the diagnosis's rules as PID 1 reads them, and the image's packages as CycloneDX 1.5.

root.sh and release.sh call it. It runs no program of the target.

usage: materials.py SYSTEM HOME SITE MUSL   (system layer, /opt/pairun, Python packages, version of musl)
       materials.py --merge FILE...         (the documents of several images; prints one of everything)
"""

from __future__ import annotations

import importlib.metadata
import json
import pathlib
import sys
from collections.abc import Iterator
from urllib.parse import quote

from pairun.errors import Problems
from pairun.playbook.content import open_content
from pairun.playbook.readyrules import made_rules, packed

SOURCES = pathlib.Path(__file__).parents[1] / "bundle" / "sources.lock"


def main() -> None:
    """Write the two files into the image's /opt/pairun, or merge those of several images."""
    if sys.argv[1:2] == ["--merge"]:
        bills = [json.loads(pathlib.Path(file).read_text()) for file in sys.argv[2:]]
        parts = {part["purl"]: part for bill in bills for part in bill["components"]}
        print(as_document([parts[purl] for purl in sorted(parts)]), end="")
        return
    system, home, site, musl = sys.argv[1:]
    problems = Problems()
    rules = made_rules(open_content([], {}), problems)
    if problems:
        sys.exit(f"image: the rules cannot be read: {list(problems)}")
    (pathlib.Path(home) / "rules.json.z").write_bytes(packed(rules))
    found = sorted({*debian_packages(system, home, musl), *python_packages(site)})
    components = [
        {"type": "library", "name": name, "version": version,
         "purl": f"pkg:{kind}/{quote(name, safe='')}@{quote(version, safe=':~')}"}
        for name, version, kind in found
    ]  # fmt: skip
    (pathlib.Path(home) / "sbom.cdx.json").write_text(as_document(components))


def as_document(components: list[dict[str, str]]) -> str:
    """These packages as CycloneDX 1.5."""
    bill = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "components": components}
    return f"{json.dumps(bill, indent=1)}\n"


def debian_packages(system: str, home: str, musl: str) -> Iterator[tuple[str, str, str]]:
    """Packages with files in the image, and those linked into the program and its tools."""
    for path in pathlib.Path(system, "var/lib/dpkg/status.d").iterdir():
        fields = dict(x.split(": ", 1) for x in path.read_text().splitlines() if ": " in x)
        yield fields["Package"], fields["Version"], "deb/debian"
    linked = [SOURCES, pathlib.Path(home, "licences/rclone.packages")]
    for line in "\n".join(path.read_text().strip() for path in linked).splitlines():
        name, version, *_ = line.split()
        yield name, version, "deb/debian"
    yield "musl", musl, "deb/debian"


def python_packages(site: str) -> Iterator[tuple[str, str, str]]:
    """Installed packages, of which pairun is one."""
    for each in importlib.metadata.distributions(path=[site]):
        yield each.metadata["Name"].lower().replace("_", "-"), each.version, "pypi"


if __name__ == "__main__":
    main()

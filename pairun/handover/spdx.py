"""Converts CycloneDX components to SPDX 2.3 in JSON (spdx.github.io/spdx-spec/v2.3)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pairun
from pairun.handover.sbom import Component

UNKNOWN = "NOASSERTION"
ROOT = "SPDXRef-0"


def spdx_document(name: str, components: Sequence[Component], created_s: int) -> str:
    """The bill of materials of a program or an image of pairun's version.

    Args:
        name: the program.
        components: its components, from `pairun.handover.sbom`.
        created_s: its date, in seconds since 1970; the same build gives the same text.
    """
    packages = [_package(number, each) for number, each in enumerate(components, start=1)]
    digest = hashlib.sha256(json.dumps(packages, sort_keys=True).encode()).hexdigest()
    created = datetime.fromtimestamp(created_s, UTC)
    version = pairun.__version__
    root = {"type": "application", "name": name, "version": version, "licence": "MIT"}
    bill = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{name}-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/{name}-{version}-{digest}",
        "creationInfo": {
            "created": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": [f"Tool: pairun-{version}"],
        },
        "packages": [_package(0, root), *packages],
        "relationships": [
            _relationship("SPDXRef-DOCUMENT", "DESCRIBES", ROOT),
            *(_relationship(ROOT, "CONTAINS", each["SPDXID"]) for each in packages),
        ],
    }
    return json.dumps(bill, indent=2)


def _package(number: int, component: Mapping[str, Any]) -> dict[str, Any]:
    """A component as a package (SPDX 2.3, clause 7)."""
    package = {
        "SPDXID": f"SPDXRef-{number}",
        "name": component["name"],
        "versionInfo": component["version"],
        "downloadLocation": UNKNOWN,
        "filesAnalyzed": False,
        "licenseConcluded": UNKNOWN,
        "licenseDeclared": component.get("licence", UNKNOWN),
        "copyrightText": UNKNOWN,
    }
    if "purl" in component:
        package["externalRefs"] = [
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": component["purl"]}
        ]  # fmt: skip
    if "hashes" in component:
        package["checksums"] = [
            {"algorithm": each["alg"].replace("-", ""), "checksumValue": each["content"]}
            for each in component["hashes"]
        ]
    return package


def _relationship(element: str, kind: str, related: str) -> dict[str, str]:
    return {"spdxElementId": element, "relationshipType": kind, "relatedSpdxElement": related}

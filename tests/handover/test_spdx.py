"""Bills of materials as SPDX."""

from __future__ import annotations

import json

from pairun.handover.sbom import debian_package, debian_source, file, python_package
from pairun.handover.spdx import spdx_document

SHA256 = "0" * 63 + "1"
COMPONENTS = [
    debian_source("openssl", "3.0.20-1~deb12u2", SHA256, True),
    debian_package("git", "1:2.39.5-0+deb12u3", "arm64"),
    python_package("Jinja2", "3.1.6"),
    file("/opt/pairun/runtime", SHA256),
]


def test_every_component_is_a_package() -> None:
    """Each has an id of its own, what identifies it elsewhere, and is contained in the whole."""
    bill = json.loads(spdx_document("pairun", COMPONENTS, 1700000000))
    whole, *packages = bill["packages"]
    assert [p["name"] for p in packages] == ["openssl", "git", "jinja2", "/opt/pairun/runtime"]
    assert packages[0]["checksums"] == [{"algorithm": "SHA256", "checksumValue": SHA256}]
    (reference,) = packages[1]["externalRefs"]
    assert reference["referenceLocator"] == "pkg:deb/debian/git@1:2.39.5-0%2Bdeb12u3?arch=arm64"
    ids = [p["SPDXID"] for p in bill["packages"]]
    assert len(set(ids)) == len(ids)
    contained = {
        r["relatedSpdxElement"]
        for r in bill["relationships"]
        if r["relationshipType"] == "CONTAINS"
    }
    assert contained == set(ids) - {whole["SPDXID"]}
    assert bill["creationInfo"]["created"] == "2023-11-14T22:13:20Z"


def test_the_same_parts_give_the_same_text() -> None:
    """The document's name is made of its content, so a build can be compared with another one."""
    one, other = (spdx_document("pairun", COMPONENTS, 0) for _ in range(2))
    assert one == other
    fewer = json.loads(spdx_document("pairun", COMPONENTS[1:], 0))
    assert fewer["documentNamespace"] != json.loads(one)["documentNamespace"]

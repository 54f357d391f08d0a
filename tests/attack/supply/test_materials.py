"""What pairun is made of: locked by digests, and listed in a bill of materials that scanners read."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator
from referencing import Registry, Resource

from pairun.handover.sbom import debian_source, document, file, python_package
from tests.cli.conftest import Shell, shell

__all__ = ["shell"]

ROOT = Path(__file__).parents[3]
SCHEMAS = Path(__file__).parent / "schema"
SHA256 = "0" * 63 + "1"


def invalid(bill: str) -> list[str]:
    """What is wrong with a bill of materials by CycloneDX's own schema."""
    schemas = [json.loads(path.read_text()) for path in SCHEMAS.glob("*.json")]
    registry: Registry[Any] = Registry().with_resources(
        (schema["$id"], Resource.from_contents(schema)) for schema in schemas
    )
    (bom,) = (schema for schema in schemas if "bom-" in schema["$id"])
    return [
        e.message for e in Draft7Validator(bom, registry=registry).iter_errors(json.loads(bill))
    ]


def test_the_schema_refuses_something() -> None:
    """Else the tests below would say nothing."""
    bill = json.loads(document("x", [python_package("a", "1")]))
    bill["components"][0]["type"] = "thing"
    bill["more"] = 1
    assert len(invalid(json.dumps(bill))) == 2


def test_a_bill_of_materials_is_valid() -> None:
    """Every kind of component, with characters that a package URL quotes."""
    components = [
        debian_source("python3.11", "1:3.11.2-6+deb12u8", SHA256, True),
        debian_source("musl", "1.2.3-1", "", False),
        python_package("Typing_Extensions", "4.1+local"),
        file("/opt/pairun/runtime", SHA256),
    ]
    assert invalid(document("bundle", components)) == []
    urls = [component.get("purl") for component in components]
    assert urls[0] == "pkg:deb/debian/python3.11@1:3.11.2-6%2Bdeb12u8?arch=source"
    assert urls[2] == "pkg:pypi/typing-extensions@4.1%2Blocal"


def test_the_command_lists_what_it_stands_on(shell: Shell) -> None:
    """`pairun --version --json` is a bill of materials with the content roots and the packages."""
    said = shell("--version", "--json")
    assert (said.code, said.err) == (0, "")
    assert invalid(said.out) == []
    names = {component["name"] for component in said.data["components"]}
    assert {"built-in playbooks", "jinja2", "jsonschema", "pyyaml"} <= names


@pytest.mark.parametrize("path", sorted(ROOT.glob("requirements*.lock")), ids=lambda p: p.name)
def test_a_lock_has_a_digest_for_everything(path: Path) -> None:
    """Pip refuses a package whose digest differs, and one without a digest."""
    text = path.read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if re.match(r"[A-Za-z0-9]", line)]
    assert lines
    assert [
        line for line in lines if not re.search(r"==\S+ .*--hash=sha256:[0-9a-f]{64}", line)
    ] == []


def test_nothing_is_installed_without_digests() -> None:
    """Each pip of the image, the bundle, the Makefile and the gate requires them, or installs this project."""
    for name in ("Dockerfile", "Makefile", "bundle/link.sh", "image/root.sh", ".ci/run"):
        text = (ROOT / name).read_text().replace("\\\n", " ")
        for line in re.findall(r"^.*\bpip\b.* install .*$", text, re.MULTILINE):
            assert "--require-hashes" in line or "--no-deps" in line, f"{name}: {line}"


def test_the_lock_of_the_sources() -> None:
    """CPython, OpenSSL, OpenSSH, rclone and the rest: each with a description and a source, by SHA-256."""
    lines = [line.split() for line in (ROOT / "bundle/sources.lock").read_text().splitlines()]
    packages = {name for name, *_ in lines}
    assert packages == {
        "python3.11", "openssl", "zlib", "bzip2", "xz-utils", "openssh", "rclone", "fuse3",
    }  # fmt: skip
    for name in packages:
        own = [line for line in lines if line[0] == name]
        assert len({version for _, version, *_ in own}) == 1
        assert all(re.fullmatch("[0-9a-f]{64}", digest) for _, _, digest, _ in own)
        files = [file for *_, file in own]
        assert any(each.endswith(".dsc") for each in files)
        assert any(".orig.tar." in each for each in files)


@pytest.mark.parametrize("arch", ["amd64", "arm64"])
def test_the_lock_of_the_images_packages(arch: str) -> None:
    """Every package of Debian in the image is locked for each architecture, by SHA-256, and no other is."""
    lines = [line.split() for line in (ROOT / "image/packages.lock").read_text().splitlines()]
    own = [line for line in lines if line[1] == arch]
    listed = (ROOT / "image/packages.txt").read_text().splitlines()
    names = {line.partition("#")[0].split()[0] for line in listed if line.partition("#")[0].split()}
    assert sorted(name for name, *_ in own) == sorted(names)
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for *_, digest, _ in own)
    assert {line[1] for line in lines} == {"amd64", "arm64"}

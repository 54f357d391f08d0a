"""Writes a program's components as a bill of materials in CycloneDX 1.5 (ECMA-424), in JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import pairun

Component = dict[str, Any]


def debian_source(name: str, version: str, sha256: str, linked: bool) -> Component:
    """A source package of Debian that was built here.

    Args:
        name: the package.
        version: with its epoch.
        sha256: of the source's description (.dsc); empty for a package that is not locked.
        linked: the program itself links it; else a tool beside it does.
    """
    component = _library(
        name, version, f"pkg:deb/debian/{_quoted(name)}@{_quoted(version)}?arch=source"
    )
    component["properties"] = [{"name": "pairun:part", "value": "program" if linked else "tools"}]
    return {**component, "hashes": [{"alg": "SHA-256", "content": sha256}]} if sha256 else component


def debian_package(name: str, version: str, architecture: str) -> Component:
    """A binary package of Debian.

    Args:
        name: the package.
        version: with its epoch.
        architecture: Debian's name of it: amd64, arm64, all.
    """
    return _library(
        name, version, f"pkg:deb/debian/{_quoted(name)}@{_quoted(version)}?arch={architecture}"
    )


def python_package(name: str, version: str) -> Component:
    """A package of PyPI."""
    name = _normal(name)
    return _library(name, version, f"pkg:pypi/{_quoted(name)}@{_quoted(version)}")


def required_packages(name: str) -> list[tuple[str, str]]:
    """Name and version of every installed package that a package needs, sorted; without extras.

    Args:
        name: the package; the list is empty if it is not installed.
    """
    from importlib.metadata import PackageNotFoundError, distribution

    known: dict[str, str] = {}
    todo = [name]
    while todo:
        try:
            package = distribution(todo.pop())
        except PackageNotFoundError:
            continue  # for another platform
        for needed in package.requires or ():
            word = re.match(r"[A-Za-z0-9._-]+", needed)
            if word and "extra ==" not in needed and _normal(word[0]) not in known:
                known[_normal(word[0])] = ""
                todo.append(word[0])
        known[_normal(package.metadata["Name"])] = package.version
    return sorted((each, version) for each, version in known.items() if version and each != name)


def content_root(layer: str, digest: str) -> Component:
    """A content root.

    Args:
        layer: its layer.
        digest: of its whole content.
    """
    return {
        "type": "data",
        "name": f"{layer} playbooks",
        "version": digest,
    }


def file(path: str, sha256: str) -> Component:
    """A file, by its SHA-256."""
    return {
        "type": "file", "name": path, "version": pairun.__version__,
        "hashes": [{"alg": "SHA-256", "content": sha256}],
    }  # fmt: skip


def document(name: str, components: Sequence[Component]) -> str:
    """The bill of materials of a program of pairun's version.

    Args:
        name: the program.
        components: its components.
    """
    version = pairun.__version__
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application", "name": name, "version": version, "purl": f"pkg:generic/{name}@{_quoted(version)}",
            }
        },
        "components": list(components),
    }  # fmt: skip
    return json.dumps(bill, indent=2)


def _library(name: str, version: str, purl: str) -> Component:
    return {"type": "library", "name": name, "version": version, "purl": purl}


def _normal(name: str) -> str:
    """A package's name as PyPI compares it (PEP 503)."""
    return re.sub("[-_.]+", "-", name).lower()


def _quoted(text: str) -> str:
    """A part of a package URL (purl specification, 5.6)."""
    return quote(text, safe=":~")

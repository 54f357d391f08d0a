"""What an installed pairun brings with it."""

from __future__ import annotations

import importlib.metadata
import re

PRODUCT = {"attrs", "jinja2", "jsonschema", "kubernetes", "pyyaml", "requests"}


def test_the_packages_of_the_product_are_its_dependencies() -> None:
    """`pip install pairun` brings all that any command needs; urllib3 is what requests stands on."""
    required = {
        re.split(r"[^\w.-]", line, maxsplit=1)[0].lower()
        for line in importlib.metadata.requires("pairun") or ()
        if "extra ==" not in line
    }
    assert required == PRODUCT | {"urllib3"}


def test_the_extra_for_clusters_is_empty() -> None:
    """Who asks for ``pairun[kubernetes]`` gets pairun, without a warning."""
    described = importlib.metadata.metadata("pairun")
    assert "kubernetes" in (described.get_all("Provides-Extra") or ())
    assert not [
        x for x in importlib.metadata.requires("pairun") or () if re.search("extra == .kuber", x)
    ]

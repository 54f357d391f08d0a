"""What an installed pairun brings with it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
PRODUCT = {"attrs", "jinja2", "jsonschema", "kubernetes", "pyyaml", "requests", "rich"}


def test_the_packages_of_the_product_are_its_dependencies() -> None:
    """`pip install pairun` brings all that any command needs; urllib3 is what requests stands on."""
    required = {re.split(r"[^\w.-]", x, maxsplit=1)[0].lower() for x in PROJECT["dependencies"]}
    assert required == PRODUCT | {"urllib3"}


def test_the_extra_for_clusters_is_empty() -> None:
    """Who asks for ``pairun[kubernetes]`` gets pairun, without a warning."""
    assert PROJECT["optional-dependencies"]["kubernetes"] == []

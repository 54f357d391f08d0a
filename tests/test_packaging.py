"""What an installed pairun brings with it."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PRODUCT = {"attrs", "jinja2", "jsonschema", "kubernetes", "pyyaml", "requests", "rich", "shtab"}


def test_the_packages_of_the_product_are_its_dependencies() -> None:
    """`pip install pairun` brings all that any command needs; urllib3 is what requests stands on."""
    required = {re.split(r"[^\w.-]", x, maxsplit=1)[0].lower() for x in PROJECT["dependencies"]}
    assert required == PRODUCT | {"urllib3"}


def test_the_extra_for_clusters_is_empty() -> None:
    """Who asks for ``pairun[kubernetes]`` gets pairun, without a warning."""
    assert PROJECT["optional-dependencies"]["kubernetes"] == []


def test_what_the_bundle_does_not_follow_is_there() -> None:
    """A command that is renamed would bring the whole command line into the bundle."""
    text = (ROOT / "bundle" / "freeze.py").read_text()
    [listed] = re.findall(r"^NOT_FOLLOWED = \((.*?)\)", text, re.DOTALL | re.MULTILINE)
    names = re.findall(r'"([\w.]+)"', listed)
    assert len(names) > 3
    assert [n for n in names if not (ROOT / f"{n.replace('.', '/')}.py").is_file()] == []


def test_the_bundle_has_what_its_commands_import() -> None:
    """A module that imports more than the bundle brings would end its build."""
    spec = importlib.util.spec_from_file_location("freeze", ROOT / "bundle" / "freeze.py")
    assert spec is not None
    assert spec.loader is not None
    freeze = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(freeze)
    found = freeze.pairun_sources(str(ROOT), dict.fromkeys(freeze.PACKAGES))
    assert "pairun.cli.runtime" in found

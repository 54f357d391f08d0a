"""What every built-in module promises."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from pairun.contract.arguments import arguments, arguments_schema

if TYPE_CHECKING:
    from tests.modules.conftest import Harness

MODULES = Path(__file__).parents[2] / "modules"
NAMES = sorted(path.stem for path in MODULES.glob("*.py"))


@pytest.mark.parametrize("name", NAMES)
def test_the_example_is_a_task_that_works(harness: Harness, name: str) -> None:
    """A module's example names the module and builds."""
    example = yaml.safe_load(harness.load(name).example)
    assert list(example) == [name]
    harness.make(name, example[name])


@pytest.mark.parametrize("name", NAMES)
def test_everything_is_documented(harness: Harness, name: str) -> None:
    """The class says what it does in one sentence, and so does every argument."""
    cls = harness.load(name)
    assert cls.__doc__ is not None
    assert cls.__doc__.split("\n")[0].endswith((".", ","))
    assert cls.privileges
    assert cls.phases
    for argument in arguments(cls):
        assert argument.doc.endswith("."), argument.name
        assert "\n" not in argument.doc
    assert arguments_schema(cls)["additionalProperties"] is False


@pytest.mark.parametrize("name", NAMES)
def test_imports_are_the_standard_library_and_the_contract(name: str) -> None:
    """A module imports pairun.module and the standard library only."""
    imported = set()
    for node in ast.walk(ast.parse((MODULES / f"{name}.py").read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(node.module or "")
    foreign = {i for i in imported if i.split(".")[0] not in sys.stdlib_module_names}
    assert foreign <= {"pairun.module"}


@pytest.mark.parametrize("name", NAMES)
def test_every_module_has_tests(name: str) -> None:
    """The tests mirror the modules."""
    assert (Path(__file__).parent / f"test_{name}.py").exists()


def test_an_unknown_key_in_a_table_fails(harness: Harness) -> None:
    """A row with a key that nobody reads is an error, not a silent pass."""
    with pytest.raises(TypeError, match="verdikt"):
        harness.table("cmd", {"what": "x", "args": {"script": ""}, "verdikt": "no_change"})

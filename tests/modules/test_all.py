"""What every built-in module promises."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from pairun.contract.arguments import arguments, arguments_schema
from pairun.contract.sources import built_in_modules

if TYPE_CHECKING:
    from tests.modules.conftest import Harness

NAMES = sorted(built_in_modules())


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
def test_every_module_has_tests(name: str) -> None:
    """The tests mirror the modules: a file for a file, a folder for a folder."""
    here = Path(__file__).parent
    assert (here / f"test_{name}.py").exists() or any((here / name).glob("test_*.py"))


def test_an_unknown_key_in_a_table_fails(harness: Harness) -> None:
    """A row with a key that nobody reads is an error, not a silent pass."""
    with pytest.raises(AssertionError, match="verdikt"):
        harness.table("cmd", {"what": "x", "args": {"script": ""}, "verdikt": "no_change"})

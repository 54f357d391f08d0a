"""The reference of the context has an example for each method, and each is a call that works."""

from __future__ import annotations

import ast
import inspect

import pytest

from docs.contextexamples import EXAMPLES
from pairun import module
from pairun.module import Context


def test_each_method_has_an_example() -> None:
    """None is missing, and none is about a method that does not exist."""
    assert set(EXAMPLES) == set(Context.effects())


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_calls_its_method_as_it_is_declared(name: str) -> None:
    """Every call of the context fits the method's arguments, and every failure is one of pairun.module."""
    called = []
    for node in ast.walk(ast.parse(EXAMPLES[name])):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if ast.unparse(node.func.value) == "ctx":
                called.append(node.func.attr)
                method = getattr(Context, node.func.attr)
                keywords = {str(k.arg): None for k in node.keywords}
                inspect.signature(method).bind(None, *(None for _ in node.args), **keywords)
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            assert ast.unparse(node.exc.func) in module.__all__
    assert name in called

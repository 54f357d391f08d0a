"""Finds errors in the parameters of a plugin spec that JSON Schema itself does not report."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jinja2 import TemplateError
from jinja2 import nodes as ast

from pairun.errors import Problems, did_you_mean
from pairun.playbook.document.reading import Node
from pairun.playbook.document.textplaces import place_in
from pairun.playbook.expressions.sandbox import ENVIRONMENT
from pairun.playbook.expressions.template import is_template

_TASKS = ("init", "runtime")
_NAMES = ("parameters", "expanded")
_OPEN = ("patternProperties", "unevaluatedProperties", "propertyNames", "allOf", "anyOf", "oneOf",
         "if", "$ref")  # fmt: skip
_METHODS = frozenset(dir(dict))
_BOUNDS = (
    ("minimum", "maximum"),
    ("exclusiveMinimum", "exclusiveMaximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
    ("minContains", "maxContains"),
)
_DATA = ("default", "const", "enum", "examples")
"""Keys of a schema that contain values, not schemas."""


def check_parameters(spec: Node, problems: Problems) -> None:
    """Report parameters that tasks use but the spec does not declare, and bounds that fit no value.

    Args:
        spec: a plugin spec that is valid by its schema.
        problems: takes every error.
    """
    schema = spec.get("parameters")
    if schema is not None:
        _check_bounds(schema, problems)
    properties = schema.get("properties") if schema is not None else None
    if schema is None or properties is None:
        return
    known = [name for name, _ in properties.items()]
    required = schema.get("required")
    for each in required.elements() if required is not None else ():
        if isinstance(each.value, str) and each.value not in known:
            problems.warning(
                "PR930",
                f"'required' names the parameter '{each.value}', which 'properties' lacks",
                each.place,
                did_you_mean(each.value, known) or "declare it under properties",
            )
    more = schema.get("additionalProperties")
    if any(schema.get(key) is not None for key in _OPEN) or (more and more.value is not False):
        return
    for key in _TASKS:
        tasks = spec.get(key)
        for text, is_condition in _templates(tasks, "") if tasks is not None else ():
            for name in _used(text.value, is_condition=is_condition):
                if name not in known:
                    problems.warning(
                        "PR930",
                        f"'{name}' is not one of the spec's parameters",
                        place_in(text, _position(text.value, name)),
                        did_you_mean(name, known) or "declare it under parameters.properties",
                    )


def _templates(node: Node, name: str) -> Iterator[tuple[Node, bool]]:
    """The texts with expressions, and whether the whole text is an expression."""
    if isinstance(node.value, str) and (name == "when" or is_template(node.value)):
        yield node, name == "when"
    for key, child in node.items():
        yield from _templates(child, key)
    for child in node.elements():
        yield from _templates(child, name)


def _used(text: str, *, is_condition: bool) -> Iterator[str]:
    """The parameters that a text's expressions use, each once."""
    try:
        tree = ENVIRONMENT.parse("{{ " + text + " }}" if is_condition else text)
    except TemplateError:
        return  # the check of expressions reports it
    names = [_parameter(each.node, each.attr) for each in tree.find_all(ast.Getattr)]
    for each in tree.find_all(ast.Getitem):
        key = each.arg.value if isinstance(each.arg, ast.Const) else None
        names.append(_parameter(each.node, str(key)) if key is not None else None)
    yield from dict.fromkeys(name for name in names if name is not None)


def _position(text: str, name: str) -> int:
    """The index where a text uses a parameter by name."""
    use = re.search(rf"\b(?:{'|'.join(_NAMES)})\s*(?:\.\s*|\[\s*['\"])({re.escape(name)})\b", text)
    return use.start(1) if use else 0


def _parameter(of: ast.Expr, name: str) -> str | None:
    """The name of a parameter if an expression reads it from the parameters."""
    is_parameter = isinstance(of, ast.Name) and of.name in _NAMES and name not in _METHODS
    return name if is_parameter else None


def _check_bounds(schema: Node, problems: Problems) -> None:
    """Report a minimum above the maximum, in the schema and in all nested schemas."""
    for low_key, high_key in _BOUNDS:
        low, high = schema.get(low_key), schema.get(high_key)
        if low is None or high is None or not (_is_number(low) and _is_number(high)):
            continue
        if low.value > high.value:
            problems.error(
                "PR215",
                f"no value fits: '{low_key}' is {low.value}, and '{high_key}' is {high.value}",
                low.key or low.place,
                "swap the two numbers",
                also=[(high_key, high.key or high.place)],
            )
    for name, child in schema.items():
        if name not in _DATA:
            _check_bounds(child, problems)
    for child in schema.elements():
        _check_bounds(child, problems)


def _is_number(node: Node) -> bool:
    return isinstance(node.value, int | float) and not isinstance(node.value, bool)

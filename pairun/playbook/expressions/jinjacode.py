"""Prepares expressions with Jinja; imported only for those that are not simple."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jinja2 import TemplateError, TemplateSyntaxError
from jinja2 import nodes as ast
from jinja2.environment import TemplateExpression
from jinja2.meta import find_undeclared_variables
from jinja2.parser import Parser

from pairun.errors import PairunError, Place
from pairun.playbook.document.textplaces import place_in
from pairun.playbook.expressions.sandbox import ENVIRONMENT
from pairun.playbook.expressions.template import inside
from pairun.playbook.expressions.views import GLOBALS, Prepared, UndefinedName, plain


def prepare(text: str, place: Place | None, *, statements: bool) -> Prepared:
    """Compile a text.

    Args:
        text: with expressions, perhaps with statements.
        place: of the text, for errors.
        statements: whether ``{% … %}`` is allowed.

    Raises:
        PairunError: it is invalid.
    """
    with _syntax(text, place):
        return _compiled(text, statements)


def prepare_condition(text: str, place: Place | None) -> Prepared:
    """Compile the bare expression of a ``when``, as `prepare` does; the result is its truth."""
    with _syntax(text, place):
        return _compiled_condition(text)


class _Statement(Exception):
    pass


@contextlib.contextmanager
def _syntax(text: str, place: Place | None) -> Iterator[None]:
    """Turn errors of parsing into problems."""
    try:
        yield
    except TemplateSyntaxError as e:
        raise PairunError.of(
            "PR302", f"not a valid expression: {e.message}", _broken(place, text, e.lineno)
        ) from e
    except UndefinedName as e:  # in a part that is constant, which Jinja evaluates at once
        raise PairunError.of("PR301", f"'{e.path}' is not defined", inside(place, text)) from e
    except (RecursionError, MemoryError):
        raise PairunError.of("PR304", "the expression is nested too deeply", place) from None
    except _Statement:
        message = "statements ({% … %}) are not allowed in a job's layer"
        hint = "use an expression: {{a if b else c}}"
        raise PairunError.of("PR303", message, inside(place, text, "{%"), hint) from None


def _broken(place: Place | None, text: str, number: int) -> Place | None:
    """The place of the first expression that is invalid by itself, or of a statement in a line."""
    if place is None:
        return None
    for part in re.finditer(r"\{\{.*?(?:\}\}|\Z)", text, re.DOTALL):
        try:
            ENVIRONMENT.compile(part[0])
        except TemplateSyntaxError:
            return place_in(place, text, part.start())
        except UndefinedName:
            continue
    if place.source.line(place.line)[place.column - 1 :][:1] != "|":
        return inside(place, text, "{%" if "{%" in text else "{{")
    # A literal block keeps the lines of the text.
    line = place.source.line(place.line + number)
    at = line.find("{%") if "{%" in line else len(line) - len(line.lstrip())
    return Place(place.source, place.line + number, at + 1)


@functools.lru_cache(maxsize=4096)
def _compiled(text: str, statements: bool) -> Prepared:
    tree = ENVIRONMENT.parse(text)
    body = tree.body
    if all(isinstance(n, ast.Output) for n in body):
        names = _names_in(tree)
    elif statements:
        names = frozenset(find_undeclared_variables(tree))
    else:
        raise _Statement
    single = (
        len(body) == 1
        and isinstance(body[0], ast.Output)
        and len(body[0].nodes) == 1
        and not isinstance(body[0].nodes[0], ast.TemplateData)
    )
    if single:
        # One sign at either end belongs to the delimiter, any further sign to the expression.
        inner = re.sub(r"^[-+]|[-+]$", "", text.strip()[2:-2])
        expression = ENVIRONMENT.compile_expression(inner, undefined_to_none=False)
        return Prepared(_run(lambda given: expression(**given)), True, names)
    template = ENVIRONMENT.from_string(text)
    return Prepared(_run(template.render), False, names)


@functools.lru_cache(maxsize=1024)
def _compiled_condition(text: str) -> Prepared:
    """Its truth value may be known even if its value is not: ``unknown or true``."""
    parser = Parser(ENVIRONMENT, text, state="variable")
    test = parser.parse_expression()
    if not parser.stream.eos:
        raise TemplateSyntaxError("chunk after expression", parser.stream.current.lineno)
    truth = ast.CondExpr(test, ast.Const(True), ast.Const(False))
    result = ast.Assign(ast.Name("result", "store"), truth, lineno=1)
    tree = ast.Template([result], lineno=1)
    tree.set_environment(ENVIRONMENT)
    expression = TemplateExpression(ENVIRONMENT.from_string(tree), undefined_to_none=False)
    return Prepared(_run(lambda given: expression(**given)), True, _names_in(truth))


def _names_in(tree: ast.Node) -> frozenset[str]:
    """The names that expressions use; they define none, so no code needs to be generated."""
    names = {name.name for name in tree.find_all(ast.Name)}
    return frozenset(names - GLOBALS - {"self"})


def _run(function: Callable[[Mapping[str, Any]], Any]) -> Callable[[Mapping[str, Any]], Any]:
    """Evaluate to plain data; errors of Jinja's own become errors of a value."""

    def run(given: Mapping[str, Any]) -> Any:
        try:
            return plain(function(given))
        except TemplateError as e:
            raise ValueError(str(e)) from e

    return run

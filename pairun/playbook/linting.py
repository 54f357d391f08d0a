"""Checks one file of a content root: a playbook, a plugin spec, a policy, a module."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from jinja2 import TemplateError
from jinja2 import nodes as ast

from pairun.contract.arguments import arguments
from pairun.contract.linting import (
    declaration,
    foreign_imports,
    ruff_findings,
    wrong_defaults,
)
from pairun.contract.loading import load_module
from pairun.contract.sources import read_source
from pairun.errors import PairunError, Problem, Problems, did_you_mean, nearest
from pairun.module import Phase
from pairun.playbook.content import Content
from pairun.playbook.document.reading import Node, elements, entries
from pairun.playbook.document.textplaces import place_in
from pairun.playbook.drafts import Draft
from pairun.playbook.effective import Layers
from pairun.playbook.expressions.filecheck import check_expressions
from pairun.playbook.expressions.sandbox import ENVIRONMENT
from pairun.playbook.expressions.template import is_template
from pairun.playbook.keywords import KEYWORDS, keywords_of
from pairun.playbook.moduleexamples import example_problems
from pairun.playbook.patches import Patcher, phase_hints
from pairun.playbook.pluginfolders import folder_plugins
from pairun.playbook.policy import Policy, policy_mistakes, unknown_pod_paths
from pairun.playbook.specs import OPEN, PHASES, check_spec
from pairun.playbook.taskchecks import check_task, check_tasks


def lint_playbook(path: str, node: Node, layers: Layers, problems: Problems) -> None:
    """Check a playbook, alone and on top of the layers below it.

    Args:
        path: the file; its name may give the phase.
        node: the file's root node.
        layers: the content roots, including the file's own.
        problems: takes every error and warning.
    """
    named = os.path.splitext(os.path.basename(path))[0]
    layers.check(node, problems, named if named in PHASES else None)
    check_expressions(node, layers.names(), problems)
    declared = node.get("phase")
    phase = next((p for p in PHASES if p == (declared.value if declared else named)), None)
    if phase is None:
        return
    problems.extend(check_tasks(node.get("tasks"), phase, layers.content))
    # Apply all layers: the tasks that a patch names must exist, and patched tasks must be valid.
    stacked = Problems()
    drafts = layers.effective([], problems=stacked).drafts
    patches = node.get("patches")
    if patches is not None and not problems.errors and layers.content.own(path) is None:
        _lint_lone_patches(drafts, phase, patches, layers, stacked)
    for task in drafts[phase].tasks():
        check_task(task, phase, layers.content, stacked)
    problems.extend(p for p in stacked if p.place and p.place.source is node.place.source)


def _lint_lone_patches(
    drafts: Mapping[Phase, Draft], phase: Phase, patches: Node, layers: Layers, problems: Problems
) -> None:
    """Apply the patches of a file outside the content roots to the effective playbooks."""
    patched = Problems()
    [other] = (p for p in PHASES if p != phase)
    elsewhere = phase_hints((t.id for t in drafts[other].tasks()), other)
    modules = layers.content.modules
    Patcher(drafts[phase], modules, "cluster", None, patched, elsewhere).apply(patches)
    known = any(r.layer != "built-in" for r in layers.content.roots)
    for p in patched:
        if p.id == "PR401" and not known:
            message = f"{p.message} of the built-in playbooks; other layers are unknown"
            hint = "; ".join(
                filter(None, (p.hint, "name the file's content roots with --root DIR"))
            )
            p = p._replace(severity="warning", message=message, hint=hint)  # noqa: PLW2901
        problems.extend([p])


def lint_changes(node: Node, layers: Layers, problems: Problems) -> None:
    """Check changes of the playbooks, in the form of a job's ``extras.pairun``.

    Args:
        node: the root node of the file, which is the job's layer.
        layers: the content roots and their policy.
        problems: takes every error and warning.
    """
    check_expressions(node, layers.names(), problems)
    stacked = Problems()
    drafts = layers.effective([], job=node, problems=stacked).drafts
    for phase in PHASES:
        for task in drafts[phase].tasks():
            check_task(task, phase, layers.content, stacked)
    problems.extend(p for p in stacked if p.place and p.place.source is node.place.source)


def lint_spec(node: Node, layers: Layers, problems: Problems) -> None:
    """Check a plugin spec; the arguments are those of `lint_playbook`."""
    check_spec(node, layers.content, problems)
    check_parameters(node, problems)
    check_expressions(node, layers.names(), problems)
    for phase in PHASES:
        problems.extend(check_tasks(node.get(phase), phase, layers.content))


def lint_policy(node: Node, layers: Layers, problems: Problems) -> None:
    """Check a policy; the arguments are those of `lint_playbook`."""
    problems.extend(policy_mistakes(node))
    # The built-in policy also names tasks of future versions.
    if node.place.source.layer != "built-in":
        drafts = layers.effective([], problems=Problems()).drafts.values()
        tasks = {t.id: t.module for d in drafts for t in d.tasks()}
        problems.extend(unknown_names(node, layers.content, tasks))


def lint_module(path: str) -> Problems:
    """The problems of a module: a file or a folder."""
    problems = Problems()
    name = os.path.basename(path).removesuffix(".py")
    if name in KEYWORDS:
        problems.error("PR213", f"{path}: '{name}' is a keyword, so no module may have that name")
    try:
        source = read_source(name, path)
        module = load_module(name, path)
        wrong = list(wrong_defaults(module, source))
        foreign = list(foreign_imports(source))
        example = declaration(module, "example", source)
    except PairunError as e:
        problems.extend(e.problems)
        return problems
    except (SyntaxError, ValueError) as e:
        # The module loads, so it does not import the invalid file.
        where = None
        if isinstance(e, SyntaxError) and e.filename and e.lineno:
            where = source.at(e.filename, e.lineno, e.offset or 1)
        problems.error("PR602", f"{path} holds a file that is not Python: {e}", where)
        return problems
    for at, message, hint in wrong:
        problems.error("PR603", message, source.at(*at), hint)
    for at, message in ruff_findings(source):
        problems.error("PR603", f"the module {name}: {message}", source.at(*at))
    if name not in KEYWORDS:
        problems.extend(example_problems(name, module, source.at(*example)))
    for each in foreign:
        place = source.at(each.file, each.line, each.column)
        if each.relative:
            problems.error(
                "PR602",
                f"the module {name} imports its own file {each.name} absolutely",
                place,
                f"write `{each.relative}`",
            )
        elif "runtime" in module.phases:
            problems.warning(
                "PR603",
                f"the module {name} may run in runtime and imports {each.name}, "
                "which the user's image may not have",
                place,
                "import the standard library and pairun.module only; or set phases = ('init',)",
            )
    return problems


_FIXED = ("id", "event")
"""Keywords that no patch can change."""


def unknown_names(policy: Node, content: Content, tasks: dict[str, str]) -> Iterator[Problem]:
    """Warn of names in a policy that do not exist.

    These are warnings, because a cluster may name what only another version has.

    Args:
        tasks: id to module of the tasks below the job.
    """
    yield from unknown_pod_paths(Policy(policy))
    may = policy.get("job_may")
    if may is None:
        return
    known = {*content.modules, *content.specs, *tasks}
    for name, entry in entries(may, "patch"):
        yield from _task_name(name, entry, known)
        module = name if name in content.modules else tasks.get(name)
        for path in entry.elements():
            yield from _path(path, module, content)
    for node in elements(may, "disable"):
        yield from _task_name(str(node.value), node, known)
    for phase in PHASES:
        for node in elements(may.get("insert"), phase):
            yield from _inserted(node, phase, content)
    read = Policy(policy)
    plugins = {*content.specs, *folder_plugins(content, read).folders}
    yield from read.unknown_plugins(plugins, "allow", "deny")


def _task_name(name: str, node: Node, known: set[str]) -> Iterator[Problem]:
    """Warn only of near misses: a prerequisite may give a task any id."""
    if {name, re.sub(r"_\d+$", "", name)} & {*known, "*"} or not (near := nearest(name, known)):
        return
    message, place = f"there is no task or module '{name}'", node.head
    yield Problem("PR406", message, place, f"did you mean '{near}'?", "warning")


def _path(node: Node, module: str | None, content: Content) -> Iterator[Problem]:
    keyword, _, rest = str(node.value).partition(".")
    known = [k for k in keywords_of("task") if k not in _FIXED]
    if keyword not in (*known, "args", "*"):
        message = f"there is no keyword '{keyword}'"
        yield _warning(message, node, did_you_mean(keyword, [*known, "args"]))
    elif keyword == "args" and rest and module is not None:
        name = rest.partition(".")[0]
        try:
            names = [a.name for a in arguments(content.module(module))]
        except PairunError as e:
            yield from (p._replace(severity="warning") for p in e.problems)
            return
        if name not in (*names, "*"):
            message = f"the module '{module}' has no argument '{name}'"
            yield _warning(message, node, did_you_mean(name, names))


def _inserted(node: Node, phase: str, content: Content) -> Iterator[Problem]:
    name = str(node.value)
    if name not in (*content.modules, "*"):
        message = f"there is no module '{name}'"
        yield _warning(message, node, did_you_mean(name, content.modules))
    elif name != "*":
        try:
            phases = content.module(name).phases
        except PairunError as e:
            yield from (p._replace(severity="warning") for p in e.problems)
            return
        if phase not in phases:
            message = f"the module '{name}' does not run in {phase}"
            yield _warning(message, node, f"it runs in {' and '.join(phases)}")


def _warning(message: str, node: Node, hint: str | None) -> Problem:
    return Problem("PR406", message, node.place, hint, "warning")


_NAMES = ("parameters", "expanded")
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
    """Report parameters that tasks use but the spec does not declare, and bounds that fit no value."""
    schema = spec.get("parameters")
    if schema is None:
        return
    _check_bounds(schema, problems)
    known = [name for name, _ in entries(schema, "properties")]
    for each in elements(schema, "required"):
        if isinstance(each.value, str) and each.value not in known:
            message = f"'required' names the parameter '{each.value}', which 'properties' lacks"
            hint = did_you_mean(each.value, known) or "declare it under properties"
            problems.warning("PR930", message, each.place, hint)
    more = schema.get("additionalProperties")
    if any(schema.get(key) is not None for key in OPEN) or (more and more.value is not False):
        return
    for key in PHASES:
        tasks = spec.get(key)
        for text, is_condition in _templates(tasks, "") if tasks is not None else ():
            for name in _used(text.value, is_condition=is_condition):
                # Without properties any parameter is allowed; a key here is meant as one of them.
                if name not in known and (known or schema.get(name) is not None):
                    message = f"'{name}' is not one of the spec's parameters"
                    hint = did_you_mean(name, known) or "declare it under parameters.properties"
                    problems.warning(
                        "PR930",
                        message,
                        place_in(text.place, text.value, _position(text.value, name)),
                        hint,
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
            message = f"no value fits: '{low_key}' is {low.value}, and '{high_key}' is {high.value}"
            hint = "swap the two numbers"
            problems.error("PR215", message, low.head, hint, also=[(high_key, high.head)])
    for name, child in schema.items():
        if name not in _DATA:
            _check_bounds(child, problems)
    for child in schema.elements():
        _check_bounds(child, problems)


def _is_number(node: Node) -> bool:
    return isinstance(node.value, int | float) and not isinstance(node.value, bool)

"""Checks one file of a content root: a playbook, a plugin spec, a policy, a module."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pairun.contract.linting import declaration, foreign_imports, wrong_defaults
from pairun.contract.loading import load_module
from pairun.contract.sources import read_source
from pairun.errors import PairunError, Place, Problems
from pairun.module import Phase
from pairun.playbook.content import Content
from pairun.playbook.document.reading import Node, decode
from pairun.playbook.drafts import Draft
from pairun.playbook.effective import Layers
from pairun.playbook.expressions.filecheck import check_expressions
from pairun.playbook.keywords import KEYWORDS
from pairun.playbook.moduleexamples import example_problems
from pairun.playbook.patches import Patcher, phase_hints
from pairun.playbook.policy import policy_mistakes
from pairun.playbook.policy_names import unknown_names
from pairun.playbook.specparameters import check_parameters
from pairun.playbook.specs import PHASES, check_spec
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
    check_expressions(node, problems)
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
    check_expressions(node, problems)
    stacked = Problems()
    drafts = layers.effective([], job=node, problems=stacked).drafts
    for phase in PHASES:
        for task in drafts[phase].tasks():
            check_task(task, phase, layers.content, stacked)
    problems.extend(p for p in stacked if p.place and p.place.source is node.place.source)


def lint_spec(node: Node, content: Content, problems: Problems) -> None:
    """Check a plugin spec; the arguments are those of `lint_playbook`."""
    check_spec(node, content, problems)
    check_parameters(node, problems)
    check_expressions(node, problems)
    for phase in PHASES:
        problems.extend(check_tasks(node.get(phase), phase, content))


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
        texts = {
            file: decode(data, source.place(file), "file")
            for file, data in source.files.items()
            if file.endswith(".py")
        }
        module = load_module(name, path)
        wrong = list(wrong_defaults(module, source))
        foreign = list(foreign_imports(source))
        example = declaration(module, "example", source)
    except PairunError as e:
        problems.extend(e.problems)
        return problems
    except (SyntaxError, ValueError) as e:
        # The module loads, so it does not import the invalid file.
        problems.error("PR602", f"{path} holds a file that is not Python: {e}")
        return problems
    for (file, line, column), message, hint in wrong:
        problems.error("PR603", message, Place(texts[file], line, column), hint)
    if name not in KEYWORDS:
        file, line, column = example
        place = Place(texts[file], line, column)
        problems.extend(example_problems(name, module, place))
    for each in foreign:
        place = Place(texts[each.file], each.line, each.column)
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

"""``pairun lint``: job files, playbooks, policies, plugin specs, modules: all problems at once."""

from __future__ import annotations

import argparse
import itertools
import json
import os
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from pairun.contract.imports import foreign_imports
from pairun.contract.loading import load_module
from pairun.errors import PairunError, Place, Problem, Problems
from pairun.formats.stored import framework_in, load_input
from pairun.job.jobfile import read_input
from pairun.module import Phase
from pairun.playbook.content import open_content
from pairun.playbook.document.checking import Ids, violations
from pairun.playbook.document.reading import Node, decode, load_bytes, read_text
from pairun.playbook.drafts import Draft
from pairun.playbook.effective import Layers
from pairun.playbook.expressions.filecheck import check_expressions
from pairun.playbook.keywords import KEYWORDS
from pairun.playbook.patches import Patcher
from pairun.playbook.policy import SCHEMA as POLICY_SCHEMA
from pairun.playbook.policy_names import unknown_names
from pairun.playbook.rootfiles import root_around
from pairun.playbook.rules import check_rules
from pairun.playbook.specs import PHASES, check_spec
from pairun.playbook.taskchecks import check_task, check_tasks
from pairun.report.problems import print_problems
from pairun.review.taskreview import problem_data
from pairun.secrets.vault import Vault


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="- is standard input")
    parser.add_argument(
        "--root",
        action="append",
        default=[],
        metavar="DIR",
        help="a content root that the files are checked against",
    )
    parser.add_argument("--json", action="store_true", help="JSON on standard output")


def run(args: argparse.Namespace) -> int:
    """Check the files; 0 when there is no error, else 1."""
    try:
        desk = _Desk(args.root)
        found = [(desk.wrong, Vault()), *(desk.lint(path) for path in args.files)]
    except PairunError as e:
        # The content roots themselves cannot be used.
        found = [(Problems(), Vault())]
        found[0][0].extend(e.problems)
    problems = list(_once(found))
    if args.json:
        shown = [problem_data(p, vault) for p, vault in problems]
        print(json.dumps({"schema": 1, "problems": shown}, indent=2, ensure_ascii=False))
    else:
        for vault, group in itertools.groupby(problems, key=lambda each: each[1]):
            print_problems([p for p, _ in group], vault=vault)
        if not problems:
            print(f"{len(args.files)} file{'s' * (len(args.files) > 1)}: nothing to complain about")
    return 1 if any(p.severity == "error" for p, _ in problems) else 0


def _once(found: list[tuple[Problems, Vault]]) -> Iterator[tuple[Problem, Vault]]:
    """Every problem once: a root's are found with each of its files."""
    seen = set()
    for problems, vault in found:
        for p in problems:
            if (key := (p.id, p.message, str(p.place))) not in seen:
                seen.add(key)
                yield p, vault


class _Desk:
    """Where files are linted.

    Args:
        roots: folders given with ``--root``.

    Attributes:
        wrong: what is wrong with these.
    """

    def __init__(self, roots: list[str]) -> None:
        self._roots = roots
        self.wrong = Problems()
        self._layers = Layers(open_content(roots, os.environ), self.wrong)
        self._around: dict[str, Layers] = {}

    def lint(self, path: str) -> tuple[Problems, Vault]:
        """The problems of one file, and what of it must not be shown."""
        if path.endswith(".py"):
            return module_problems(path), Vault()
        problems = Problems()
        try:
            layers = self._layers_for(path)
            own = layers.content.own(path)
            data = load_bytes(own[0]) if own else load_input(path)
            if not own and framework_in(data, path) is not None:
                return _lint_job(path, data, layers)
            node = layers.content.document(*own) if own else read_text(decode(data, path, "file"))
        except PairunError as e:
            problems.extend(e.problems)
            return problems, Vault()
        problems.extend(layers.warnings)
        kind = _kind(path, node)
        if kind == "playbook":
            _lint_playbook(path, node, layers, problems)
        elif kind == "spec":
            check_spec(node, layers.content, problems)
            check_expressions(node, problems)
            for phase in PHASES:
                problems.extend(check_tasks(node.get(phase), phase, layers.content))
        elif kind == "policy":
            _lint_policy(node, layers, problems)
        elif kind == "diagnosis":
            check_rules(node, problems)
        elif kind == "pod" and not self.wrong.errors:
            return _lint_pod(path, node, layers)
        elif not self.wrong.errors:
            return _lint_job(path, data, layers)
        return problems, Vault()

    def _layers_for(self, path: str) -> Layers:
        """The stack with the content root that the file lies in."""
        root = root_around(path)
        if root is None or self._layers.content.own(path):
            return self._layers
        if root not in self._around:
            # What is wrong with its other files is said when these are linted.
            self._around[root] = Layers(open_content([*self._roots, root], os.environ), Problems())
        return self._around[root]


_KEYS = {"phase": "playbook", "summary": "spec", "job_may": "policy", "rules": "diagnosis"}
_JOB_KEYS = ("protocolVersion", "taskRoles", "jobName")
_POD_KEYS = ("initPlugins", "runtimePlugin", "commands")


def _kind(path: str, node: Node) -> str:
    """What kind of file it is: its content tells, else its folder, else what is nearly a key."""
    keys = [k for k, _ in node.items()]
    for key, kind in _KEYS.items():
        if key in keys:
            return kind
    name, folder = os.path.basename(path), os.path.basename(os.path.dirname(os.path.abspath(path)))
    if folder == "plugin_specs":
        return "spec"
    if folder == "diagnosis":
        return "diagnosis"
    if folder == "playbooks":
        return "policy" if name.startswith("policy.") else "playbook"
    if any(k in keys for k in _JOB_KEYS):
        return "job"
    if any(k in keys for k in _POD_KEYS):
        return "pod"
    for key, kind in _KEYS.items():
        if get_close_matches(key, keys, n=1, cutoff=0.75):
            return kind
    return "playbook" if "tasks" in keys or "patches" in keys else "job"


def _lint_playbook(path: str, node: Node, layers: Layers, problems: Problems) -> None:
    named = os.path.splitext(os.path.basename(path))[0]
    layers.check(node, problems, named if named in PHASES else None)
    check_expressions(node, problems)
    said = node.get("phase")
    phase = next((p for p in PHASES if p == (said.value if said else named)), None)
    if phase is None:
        return
    problems.extend(check_tasks(node.get("tasks"), phase, layers.content))
    # As it is stacked: what a patch names must be there, and what it says must fit.
    found = Problems()
    drafts = layers.effective([], problems=found).drafts
    patches = node.get("patches")
    if patches is not None and not problems.errors and layers.content.own(path) is None:
        _patch_alone(drafts, phase, patches, layers, found)
    for task in drafts[phase].tasks():
        check_task(task, phase, layers.content, found)
    problems.extend(p for p in found if p.place and p.place.source is node.place.source)


def _patch_alone(
    drafts: Mapping[Phase, Draft], phase: Phase, patches: Node, layers: Layers, problems: Problems
) -> None:
    """Apply the patches of a file that lies in no root to what is stacked."""
    found = Problems()
    elsewhere = {t.id: p for p in PHASES if p != phase for t in drafts[p].tasks()}
    modules = layers.content.modules
    Patcher(drafts[phase], modules, "cluster", None, found, elsewhere).apply(patches)
    known = any(r.layer != "built-in" for r in layers.content.roots)
    for p in found:
        if p.id == "PR401" and not known:
            message = f"{p.message} of this version; a file alone does not tell of other layers"
            hint = "; ".join(filter(None, (p.hint, "--root DIR names the roots that it is for")))
            p = p._replace(severity="warning", message=message, hint=hint)  # noqa: PLW2901
        problems.extend([p])


def _lint_policy(node: Node, layers: Layers, problems: Problems) -> None:
    problems.extend(violations(node, POLICY_SCHEMA, Ids("PR406", "PR406", "PR406")))
    # The built-in policy also names what a later version brings.
    if node.place.source.layer != "built-in":
        drafts = layers.effective([], problems=Problems()).drafts.values()
        tasks = {t.id: t.module for d in drafts for t in d.tasks()}
        problems.extend(unknown_names(node, layers.content, tasks))


def module_problems(path: str) -> Problems:
    """What is wrong with a module's file."""
    problems = Problems()
    name = os.path.basename(path).removesuffix(".py")
    if name in KEYWORDS:
        problems.error("PR213", f"{path}: '{name}' is a keyword, so no module may be called that")
    try:
        source = decode(load_bytes(path), path, "file")
        phases = load_module(name, path).phases
    except PairunError as e:
        problems.extend(e.problems)
        return problems
    for each in foreign_imports(source.text) if "runtime" in phases else ():
        problems.warning(
            "PR603",
            f"the module {name} may run in runtime and imports {each.name}, "
            "which the user's image may not have",
            Place(source, each.line, each.column),
            "only the standard library and pairun.module are there; or phases = ('init',)",
        )
    return problems


def _lint_pod(path: str, node: Node, layers: Layers) -> tuple[Problems, Vault]:
    """Lint a setting of a plain Pod: as a review of both does."""
    from pairun.cli.dry_run import review_pod
    from pairun.review.settings import NO_SETTINGS, read_settings

    problems = Problems()
    if path == "-":
        problems.error(
            "PR801",
            "a setting of a plain Pod is not read from standard input",
            None,
            "write it to a file, and lint that",
        )
        return problems, Vault()
    try:
        if node.get("initPlugins") is not None:
            review = review_pod(None, layers, "user", read_settings(path))
        else:
            review = review_pod(path, layers, "user", NO_SETTINGS)
    except PairunError as e:
        problems.extend(e.problems)
        return problems, Vault()
    return review.problems, review.vault


def _lint_job(path: str, data: bytes, layers: Layers) -> tuple[Problems, Vault]:
    from pairun.cli.dry_run import review_loaded

    review = review_loaded(path, *read_input(data, path), layers, [])
    return review.problems, review.vault

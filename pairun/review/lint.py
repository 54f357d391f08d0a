"""Checks files, each according to its kind."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from pairun.contract.sources import module_at
from pairun.diagnose.lines import Log
from pairun.diagnose.weighing import diagnose
from pairun.errors import PairunError, Problem, Problems, Source, did_you_mean
from pairun.job.stored import framework_in, is_manifest, load_input
from pairun.openpai.podconfig import EXIT_SPEC
from pairun.playbook.content import Content, built_in_root, open_content
from pairun.playbook.document.reading import Node, decode, elements, load_bytes, read_text
from pairun.playbook.effective import Layers
from pairun.playbook.keywords import OPERATIONS
from pairun.playbook.linting import lint_changes, lint_module, lint_playbook, lint_policy, lint_spec
from pairun.playbook.pluginfolders import check_folder
from pairun.playbook.rootfiles import (
    DESCRIPTION,
    PLAYBOOK_FILES,
    is_ours,
    is_root,
    not_a_root,
    root_around,
)
from pairun.playbook.rules import check_rules, read_rules
from pairun.playbook.specs import PHASES
from pairun.review.jobreview import NO_SETTINGS, JobReview, read_settings, review_data, review_pod
from pairun.review.lintpaths import files_in
from pairun.review.shellsyntax import ShellSyntax, scripts_of_file, scripts_of_plan
from pairun.secrets.vault import Vault


class Linted(NamedTuple):
    """The result of a lint.

    Attributes:
        problems: the problems of the files and of the content roots, each once.
        files: path to the detected kind of the file.
    """

    problems: list[Problem]
    files: dict[str, str]


def lint(paths: Sequence[str], roots: list[str], vault: Vault) -> Linted:
    """Check files, and all files in folders.

    If a folder is a content root, it is one of the roots that the files are checked against.

    Args:
        paths: the files and folders; ``-`` is standard input.
        roots: further content roots to check the files against.
        vault: collects every secret that is read.
    """
    kinds: dict[str, str] = {}
    try:
        refused = Problems()
        folders = {p: _files_in(p, refused) for p in paths if os.path.isdir(p)}
        own = [p for p in folders if is_root(p) and _adds_a_root(p, roots)]
        linter = _Linter([*roots, *own], vault)
        linted = [refused, linter.root_problems, linter.folder_problems]
        files: dict[str, tuple[str, bool]] = {}
        for path in paths:
            for file in folders.get(path, [path]):
                # A file that is named, and in a folder that is named, is checked once.
                key = file if file == "-" else os.path.abspath(file)
                files[key] = (file, path not in folders or files.get(key, ("", False))[1])
        for file, named in files.values():
            kinds[file], problems = linter.lint(file, named=named)
            linted.append(problems)
        linted.append(linter.unread_scripts())
    except PairunError as e:
        # The content roots themselves are unusable.
        linted = [Problems(e.problems)]
    return Linted(list(_each_once(linted)), kinds)


def _files_in(folder: str, problems: Problems) -> list[str]:
    """The files of a folder; the problems take a folder that cannot be listed."""
    try:
        return files_in(folder)
    except PairunError as e:
        problems.extend(e.problems)
        return []


def _adds_a_root(folder: str, roots: list[str]) -> bool:
    """Whether a folder is a content root that is not yet among the roots."""
    known = map(os.path.realpath, (built_in_root().path, *roots))
    return not_a_root(folder) is None and os.path.realpath(folder) not in known


def _each_once(linted: Sequence[Problems]) -> Iterator[Problem]:
    """Every problem once: a root's problems are reported with each of its files."""
    seen = set()
    for problems in linted:
        for p in problems:
            if (key := (p.id, p.message, str(p.place))) not in seen:
                seen.add(key)
                yield p


class _Linter:
    """Checks files against stacks of content roots.

    Args:
        roots: folders above the built-in root.
        vault: collects every secret that is read.

    Attributes:
        root_problems: the problems of these roots.
        folder_problems: the problems of their plugin folders.
    """

    def __init__(self, roots: list[str], vault: Vault) -> None:
        self._roots = roots
        self._vault = vault
        self.root_problems = Problems()
        self._layers = Layers(open_content(roots, os.environ), self.root_problems)
        self.folder_problems = Problems()
        self._layers.folders.check(self._layers.content, self.folder_problems)
        self._around: dict[str, Layers] = {}
        self._syntax = ShellSyntax()

    def unread_scripts(self) -> Problems:
        """A note on scripts whose syntax was not checked."""
        return Problems(self._syntax.unread())

    def lint(self, path: str, *, named: bool = True) -> tuple[str, Problems]:
        """Check one file.

        Args:
            path: the file, or the folder of a module.
            named: whether a person names this file; pairun skips other files that are not its own.

        Returns:
            The detected kind of the file, and its problems.
        """
        module = module_at(path)
        # A package of Python outside a content root may be another project's.
        if module is not None and (path.endswith(".py") or is_ours(module, ".py")):
            return "module", lint_module(module)
        data, known = b"", named
        try:
            layers = self._layers_for(path, named=named)
            own = layers.content.own(path)
            known = named or own is not None
            data = load_bytes(own[0]) if own else load_input(path)
            if not own and framework_in(data, path) is not None:
                return "Framework", self._lint_job(path, data, layers)
            if os.path.basename(path) == EXIT_SPEC:
                return "exit spec", _lint_exit_spec(decode(data, path, "file"))
            node = layers.content.document(*own) if own else read_text(decode(data, path, "file"))
        except PairunError as e:
            if (kind := _skipped(data, {p.id for p in e.problems}, named=known)) is not None:
                return kind, Problems()
            return "cannot be read", Problems(e.problems)
        kind = _kind(path, node, named=known) or ("job" if named else UNREAD)
        if kind in ("pod", "job") and not self.root_problems.errors:
            if kind == "pod":
                return "settings of a plain Pod", self._lint_pod(path, node, layers)
            return kind, self._lint_job(path, data, layers)
        problems = Problems(layers.warnings)
        problems.extend(_unread(path, layers.content))
        if kind == "playbook":
            lint_playbook(path, node, layers, problems)
            problems.extend(self._syntax.check(scripts_of_file(node)))
        elif kind == "plugin spec":
            lint_spec(node, layers, problems)
            problems.extend(self._syntax.check(scripts_of_file(node)))
        elif kind == CHANGES:
            lint_changes(read_text(decode(data, path, "job")), layers, problems)
            problems.extend(self._syntax.check(scripts_of_file(node)))
        elif kind == "policy":
            lint_policy(node, layers, problems)
        elif kind == "diagnosis rules":
            check_rules(node, problems)
            if own and not problems.errors:
                check_lost(node, layers.content, problems)
        elif kind == "plugin folder":
            problems.extend(check_folder(node, os.path.dirname(path) or "."))
        return kind, problems

    def _layers_for(self, path: str, *, named: bool) -> Layers:
        """The stack of roots, plus the content root around the file.

        A job next to a root's files uses that root only if the person did not name the job.
        """
        root = root_around(path)
        beside = os.path.dirname(path)
        if root is None and not named and beside and _adds_a_root(beside, self._roots):
            root = beside
        if root is None or self._layers.content.own(path) or not is_root(root):
            return self._layers
        if root not in self._around:
            # The root's other files report their problems when they are linted.
            self._around[root] = Layers(open_content([*self._roots, root], os.environ), Problems())
        return self._around[root]

    def _lint_pod(self, path: str, node: Node, layers: Layers) -> Problems:
        """Review the settings of a plain Pod."""
        if path == "-":
            message = "a setting of a plain Pod is not read from standard input"
            return Problems([Problem("PR801", message, hint="lint a file")])
        try:
            is_init = node.get("initPlugins") is not None
            settings = read_settings(path) if is_init else NO_SETTINGS
            commands = None if is_init else path
            review = review_pod(commands, layers, "user", settings, vault=self._vault)
        except PairunError as e:
            return Problems(e.problems)
        return self._with_syntax(review)

    def _lint_job(self, path: str, data: bytes, layers: Layers) -> Problems:
        return self._with_syntax(review_data(data, path, layers, "user", [], vault=self._vault))

    def _with_syntax(self, review: JobReview) -> Problems:
        """The problems of a review, plus the syntax errors that bash finds in its scripts."""
        problems = Problems(review.problems)
        for plan in review.plans:
            others = review.settings.plain or review.settings.init_plugins is not None
            problems.extend(self._syntax.check(scripts_of_plan(plan, other_settings=others)))
        return problems


def _unread(path: str, content: Content) -> Iterator[Problem]:
    """A warning of a file in a folder of a content root whose name pairun does not read."""
    whole, name = os.path.abspath(path), os.path.basename(path)
    for root in content.roots:
        if whole in (os.path.abspath(os.path.join(root.path, each)) for each in root.ignored()):
            is_playbook = os.path.basename(os.path.dirname(whole)) == "playbooks"
            names = PLAYBOOK_FILES if is_playbook else (os.path.splitext(name)[0],)
            hint = did_you_mean(name, [f"{each}.yaml" for each in names])
            yield Problem("PR912", f"pairun does not read {path}", None, hint, "warning")


def _lint_exit_spec(source: Source) -> Problems:
    from pairun.openpai.exitspec import read_exit_spec

    problems = Problems()
    read_exit_spec(source, problems)
    return problems


def _skipped(data: bytes, ids: set[str], *, named: bool) -> str | None:
    """The kind of an unreadable file that does not belong to pairun; else None.

    Args:
        data: the file, as far as it could be read.
        ids: the ids of the errors.
        named: whether a person names this file; then a manifest with mistakes is reported.
    """
    if (not named or ids <= {"PR109", "PR735"}) and is_manifest(data.decode("utf-8", "replace")):
        return MANIFEST
    return UNREAD if not named and ids == {"PR735"} else None


SKIPPED = "skipped: "
"""The names of file kinds that are not linted begin with these."""
UNREAD = f"{SKIPPED}nothing that pairun reads"
MANIFEST = f"{SKIPPED}a manifest of Kubernetes, for `pairun inject`"
CHANGES = "changes of the playbooks, for `pairun inject --playbook`"
_KEYS = {
    "phase": "playbook",
    "summary": "plugin spec",
    "job_may": "policy",
    "rules": "diagnosis rules",
}
_JOB_KEYS = ("protocolVersion", "taskRoles", "jobName")
_POD_KEYS = ("initPlugins", "runtimePlugin", "commands")


def _kind(path: str, node: Node, *, named: bool) -> str | None:
    """The kind of a file: by its keys, else by its folder, else by a misspelled key."""
    keys = [k for k, _ in node.items()]
    for key, kind in _KEYS.items():
        if key in keys:
            return kind
    if os.path.basename(path) == DESCRIPTION and ("init-script" in keys or not _is_job(keys)):
        return "plugin folder"
    name, above = os.path.basename(path), os.path.dirname(os.path.abspath(path))
    # Other projects have folders with these names, too, but their playbooks are lists.
    is_ours = named or is_root(os.path.dirname(above)) or _has_its_place(path, keys)
    folder = os.path.basename(above) if is_ours else ""
    if folder == "plugin_specs":
        return "plugin spec"
    if folder == "diagnosis":
        return "diagnosis rules"
    if folder == "playbooks":
        return "policy" if name.startswith("policy.") else "playbook"
    if _is_job(keys):
        return "job"
    if any(k in keys for k in _POD_KEYS):
        return "pod"
    if _is_changes(node, keys):
        return CHANGES
    for key, kind in _KEYS.items():
        if get_close_matches(key, keys, 1, 0.75):
            return kind
    return "playbook" if "tasks" in keys or "patches" in keys else None


def _has_its_place(path: str, keys: list[str]) -> bool:
    """Whether a mapping lies where a content root has its playbooks and its policy."""
    return (
        bool(keys)
        and not _is_job(keys)
        and os.path.splitext(os.path.basename(path))[0] in PLAYBOOK_FILES
    )


def _is_changes(node: Node, keys: list[str]) -> bool:
    """Whether a file has the form of a job's ``extras.pairun``, with at least one operation."""
    operations = [op for phase in PHASES for op in elements(node, phase)]
    return set(keys) <= {"vars", *PHASES} and any(
        key in OPERATIONS for op in operations for key, _ in op.items()
    )


def _is_job(keys: list[str]) -> bool:
    return any(k in keys for k in _JOB_KEYS)


MOST_RULES = 500
"""A file with more rules is not tried: a hostile one would cost seconds."""


def check_lost(document: Node, content: Content, problems: Problems) -> None:
    """Warn of each rule in a file if another rule decides one of its samples.

    Args:
        document: the file, already validated.
        content: the content roots, the file's own included.
        problems: collects the warnings.
    """
    nodes = {node.value["id"].value: node for node in elements(document, "rules")}
    if not 0 < len(nodes) <= MOST_RULES:
        return
    rules = read_rules(content, Problems())
    table = rules.table()
    for name, node in nodes.items():
        sample = rules.samples.get(name)
        if sample is None or sample.data["role"] == "noise":
            continue
        for text in sample.positive:
            verdict = diagnose([Log(text.encode())], table)
            if verdict.rule not in ("", name) and verdict.klass != sample.data["class"]:
                weight = min(table.rules[verdict.rule].weight + 1, 98)
                problems.warning(
                    "PR799",
                    f"the rule '{verdict.rule}' ({verdict.klass}) decides a sample of '{name}': "
                    f"{text}",
                    node.place,
                    f"give it `weight: {weight}`, or disable '{verdict.rule}'",
                )
                break

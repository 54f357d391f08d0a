"""`pairun inject`: puts pairun into a manifest's Pod templates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pairun.base.paths import DEFAULT_PAI_DIR
from pairun.errors import Problems, Source
from pairun.inject.beside import add_beside, keys_in, without_beside
from pairun.inject.commands import command_of
from pairun.inject.features import Features
from pairun.inject.hazards import check_pod, holds_none, left_out
from pairun.inject.maincontainer import main_container
from pairun.inject.options import Options
from pairun.inject.podspec import (
    PROGRAM,
    SEPARATOR,
    VOLUME,
    PodEdit,
    field,
    grace_s,
    init_container,
)
from pairun.inject.removal import remove
from pairun.inject.splices import Splices
from pairun.inject.templates import Template, owners_in, templates_of
from pairun.inject.tree import Mapping, Part, Sequence, Tree, target
from pairun.inject.treereading import read_tree

GRACE = "PAIRUN_GRACE"
TERMINATION = "PAIRUN_TERMINATION_LOG"


def inject(source: Source, options: Options, problems: Problems) -> str:
    """Put pairun into every Pod template of a manifest.

    It replaces what an earlier injection added: injecting twice gives the same as injecting once.

    Args:
        source: the manifest.
        options: the command's options.
        problems: takes errors and warnings.

    Returns:
        The manifest; unchanged if there is an error.

    Raises:
        PairunError: the manifest cannot be read.
    """
    tree = read_tree(source)
    cleaned = remove(tree)
    if cleaned != source.text:
        tree = read_tree(Source(source.file, source.layer, cleaned))
    splices = Splices(tree)
    features = Features(options, keys_in(read_tree(source)), problems)
    edited: list[Mapping] = []
    for templates in _templates(tree, problems):
        for template in templates:
            _inject_template(splices, template, templates, options, features, edited, problems)
    if options.barrier and edited and not features.gangs and not problems.errors:
        problems.error("PR824", f"{source.file} has no gang whose Pods could wait for each other")
    where = "standard input" if source.file == "-" else source.file
    if not edited and not problems.errors:
        problems.error(
            "PR820",
            f"no Pod template found in {where}",
            hint=_JOB if _is_job(tree) else None,
        )
    if problems.errors:
        return source.text
    add_beside(splices, tree, features.objects)
    made = splices.apply()
    check_edits(tree, made, edited, problems)
    return source.text if problems.errors else made


def uninject(source: Source, problems: Problems) -> str:
    """Remove pairun from a manifest.

    Args:
        source: the manifest.
        problems: takes a warning if the file is a job and not a manifest.

    Raises:
        PairunError: the manifest cannot be read.
    """
    tree = read_tree(source)
    if _is_job(tree):
        problems.warning(
            "PR820", f"{source.file} is not a manifest: nothing was removed", hint=_JOB
        )
    return remove(tree)


_JOB = "it is a job file: print the objects of its Pods with `pairun manifest`"


def _is_job(tree: Tree) -> bool:
    """Whether a text is a job file and not a manifest."""
    root = tree.documents[0] if len(tree.documents) == 1 else None
    return isinstance(root, Mapping) and bool(root.own("taskRoles")) and not root.own("kind")


def _templates(tree: Tree, problems: Problems) -> Iterator[list[Template]]:
    """The templates of each object."""
    for document in tree.documents:
        for owner in owners_in(document):
            templates = list(templates_of(owner))
            if not templates and (why := holds_none(owner)):
                problems.warning("PR820", f"{owner.kind} {owner.name}: {why}", owner.root.place)
            yield templates


def _inject_template(
    splices: Splices,
    template: Template,
    siblings: list[Template],
    options: Options,
    features: Features,
    edited: list[Mapping],
    problems: Problems,
) -> None:
    """Edit one template; record its spec and its main container as edited."""
    container = main_container(template, options.container, problems)
    if container is None:
        return
    if why := left_out(template, container):
        problems.warning("PR827", f"{template.label} is omitted: {why}", container.place)
        return
    if template.spec in edited or container in edited:
        problems.error(
            "PR822",
            f"{template.label} shares its text with another template, by an anchor",
            template.spec.place,
            "write both templates out",
        )
        return
    errors = len(problems.errors)
    check_pod(template, container, problems)
    command = command_of(template, container, options.entrypoint, options.ask, problems)
    addition = features.addition(template, container, siblings)
    if command is None or len(problems.errors) > errors:
        return
    edit = PodEdit(splices, template.spec, container)
    edit.wrap([PROGRAM, SEPARATOR], command.written)
    if command.pinned:
        edit.pin(command.pinned)
    edit.add_env([*_environment(template.spec, container), *addition.env])
    edit.add_mounts([{"name": VOLUME, "mountPath": DEFAULT_PAI_DIR}, *addition.mounts])
    edit.add_volumes([{"name": VOLUME, "emptyDir": {}}, *addition.volumes])
    if addition.service_account:
        edit.set_account(addition.service_account)
    edit.finish(init_container(options, addition, template.spec, container, command.argv))
    edited += [template.spec, container]


def _environment(spec: Mapping, container: Mapping) -> list[dict[str, Any]]:
    """The variables that PID 1 needs."""
    made = [field("FC_POD_UID", "metadata.uid"), field("FC_POD_NAME", "metadata.name")]
    if (seconds := grace_s(spec)) is not None:
        made.append({"name": GRACE, "value": f"{seconds:g}s"})
    if path := container.get("terminationMessagePath"):
        made.append({"name": TERMINATION, "value": str(path.plain())})
    return made


Path = tuple[str | int, ...]

_OF_SPEC = ("initContainers", "volumes", "serviceAccountName")
_OF_CONTAINER = ("command", "env", "volumeMounts", "image")


def check_edits(tree: Tree, made: str, edited: list[Mapping], problems: Problems) -> None:
    """Refuse an edit that changed more than the edited Pods: anchors may share text with others.

    Args:
        tree: the text before the edits.
        made: the text after them.
        edited: the specs and the main containers that were edited.
        problems: takes an error.
    """
    ids = {id(part) for part in edited}
    after = read_tree(Source(tree.source.file, tree.source.layer, made))
    for before, now in zip(tree.documents, without_beside(after), strict=False):
        allowed = frozenset(_paths(before, ids, ()))
        for path in _differences(before.plain(), now, (), allowed):
            problems.error(
                "PR822",
                f"an anchor shares text of a Pod with {'.'.join(map(str, path))}, which must not "
                "change",
                before.place,
                "write what the alias names where it is used",
            )
            return


def _paths(part: Part, edited: set[int], path: Path) -> Iterator[Path]:
    """The paths that an edit may change."""
    part = target(part)
    if isinstance(part, Mapping):
        if id(part) in edited:
            for key in _OF_SPEC if part.get("containers") else _OF_CONTAINER:
                yield (*path, key)
        for key in part.plain():
            child = part.get(key)
            if child is not None:
                yield from _paths(child, edited, (*path, key))
    elif isinstance(part, Sequence):
        for number, item in enumerate(part.items):
            yield from _paths(item, edited, (*path, number))


def _differences(a: Any, b: Any, path: Path, allowed: frozenset[Path]) -> Iterator[Path]:
    if path in allowed:
        return
    if isinstance(a, dict) and isinstance(b, dict):
        for key in dict.fromkeys((*a, *b)):
            if key not in a or key not in b:
                if (*path, key) not in allowed:
                    yield (*path, key)
            else:
                yield from _differences(a[key], b[key], (*path, key), allowed)
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for number, (x, y) in enumerate(zip(a, b, strict=True)):
            yield from _differences(x, y, (*path, number), allowed)
    elif a != b or type(a) is not type(b):
        yield path

"""`pairun inject`: puts pairun into a manifest's Pod templates."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from collections.abc import Sequence as Items
from typing import Any, NamedTuple

from pairun.base.fields import Path
from pairun.base.paths import DEFAULT_PAI_DIR
from pairun.errors import Place, Problems, Source
from pairun.inject.beside import add_beside, is_added, keys_in, without_beside
from pairun.inject.commands import command_of, main_container
from pairun.inject.features import Features
from pairun.inject.hazards import check_pod, left_out
from pairun.inject.options import ANNOTATED, InjectOptions
from pairun.inject.podspec import (
    PROGRAM,
    SCHEDULING_GROUP,
    SEPARATOR,
    VOLUME,
    PodEdit,
    field,
    grace_s,
    init_container,
)
from pairun.inject.removal import remove
from pairun.inject.splices import Splices
from pairun.inject.templates import Template, TemplateOwner, mapping_at, owners_in, templates_of
from pairun.inject.tree import Mapping, Part, Sequence, Tree, mappings_in, name_of, target
from pairun.inject.treereading import read_tree

GRACE = "PAIRUN_GRACE"
TERMINATION = "PAIRUN_TERMINATION_LOG"


class Injection(NamedTuple):
    """The manifests with pairun in them.

    Attributes:
        texts: of the manifests; unchanged if there is an error.
        summary: a line for each object: what it got, or why it is left alone.
    """

    texts: list[str]
    summary: list[str]


class _Left(NamedTuple):
    """Why an object or a template is left alone; without an id, because the user wants that."""

    label: str
    why: str
    place: Place | None = None
    id: str = ""
    hint: str | None = None


def inject(sources: Items[Source], options: InjectOptions, problems: Problems) -> Injection:
    """Put pairun into the Pod templates of manifests.

    It replaces what an earlier injection added: injecting twice gives the same as injecting once.

    Raises:
        PairunError: a manifest cannot be read.
    """
    files = [_File(source, options, problems) for source in sources]
    texts = [file.inject() for file in files]
    lefts = [left for file in files for left in file.left]
    is_asked = any(not left.id for left in lefts)
    if not is_asked and not any(file.edited for file in files) and not problems.errors:
        reasons = [left for left in lefts if left.hint or left.id == "PR827"]
        for left in reasons:
            problems.error(left.id, f"{left.label}: {left.why}", left.place, left.hint)
        if not reasons:
            where = ", ".join("standard input" if f.name == "-" else f.name for f in files)
            hint = _JOB if any(_is_job(file.tree) for file in files) else None
            problems.error("PR820", f"no Pod template found in {where}", hint=hint)
    for name in options.unused():
        problems.error("PR801", f"{name}: nothing in the manifest has this name")
    made = [source.text for source in sources] if problems.errors else texts
    return Injection(made, [line for file in files for line in file.summary])


class _File:
    """One manifest.

    Attributes:
        name: of the file.
        tree: its documents, without an earlier injection.
        edited: the specs and the main containers that were edited.
        left: what is left alone.
        summary: a line for each object.
    """

    def __init__(self, source: Source, options: InjectOptions, problems: Problems) -> None:
        self._options, self._problems = options, problems
        before = read_tree(source)
        self.name = source.file
        self.tree = before
        cleaned = remove(before)
        if cleaned != source.text:
            self.tree = read_tree(Source(source.file, source.layer, cleaned))
        self._splices = Splices(self.tree)
        self._features = Features(options, keys_in(before), problems)
        self.edited: list[Mapping] = []
        self.left: list[_Left] = []
        self.summary: list[str] = []

    def inject(self) -> str:
        """The text with pairun in it."""
        for document in self.tree.documents:
            for owner in _objects_in(document):
                self._inject_object(owner)
        features = self._features
        if features.without and not features.gangs and not self._problems.errors:
            why = f"{self.name} has no gang whose Pods could wait for each other"
            self._problems.error("PR824", f"{why}: {features.without[0]}")
        if self._problems.errors:
            return self.tree.text
        add_beside(self._splices, self.tree, features.objects)
        made = self._splices.apply()
        check_edits(self.tree, made, self.edited, self._problems)
        return made

    def _inject_object(self, owner: TemplateOwner) -> None:
        templates = list(templates_of(owner))
        whole = _left_object(owner, templates, self._options)
        names: list[str] = []
        notes: list[str] = []
        lefts = [whole] if whole else []
        for template in [] if whole else templates:
            made = self._inject_template(template, templates)
            if isinstance(made, _Left):
                lefts.append(made)
            elif made:
                names.append(made[0])
                notes += made[1:]
        self.left += lefts
        if names:
            notes += [f"left alone: {each.label}, {each.why}" for each in lefts]
            line = "; ".join([", ".join(names), *dict.fromkeys(notes)])
            self.summary.append(f"injected    {owner.label}: {line}")
        elif lefts:
            line = "; ".join(dict.fromkeys(each.why for each in lefts))
            self.summary.append(f"left alone  {owner.label}: {line}")

    def _inject_template(self, template: Template, siblings: list[Template]) -> list[str] | _Left:
        """Edit one template; returns its container and what else the summary says of it."""
        options, problems = self._options, self._problems
        if why := _not_chosen(template.owner, template.metadata, options):
            return _Left(template.label, why)
        if template.rule is None and (left := _left_template(template, options)):
            return left
        container = main_container(template, options, problems)
        if container is None:
            return []
        if reason := left_out(template, container):
            return _Left(template.label, reason, container.place, "PR827")
        if template.spec in self.edited or container in self.edited:
            message = f"{template.label} shares its text with another template, by an anchor"
            problems.error("PR822", message, template.spec.place, "write both templates out")
            return []
        errors = len(problems.errors)
        check_pod(template, container, problems)
        group = options.of(options.pod_group, "--pod-group", *template.names)
        if group and template.spec.get(SCHEDULING_GROUP):
            problems.error(
                "PR801",
                f"{template.label} has its own {SCHEDULING_GROUP}, but --pod-group is '{group}'",
                template.spec.place,
                "remove one of them",
            )
        command = command_of(template, container, options, problems)
        addition = self._features.addition(template, container, siblings)
        if command is None or len(problems.errors) > errors:
            return []
        edit = PodEdit(self._splices, template.spec, container)
        spec = template.spec
        if command.written is None:
            edit.extend(container, "command", [PROGRAM, SEPARATOR], first=True)
        else:
            edit.set(container, "command", [PROGRAM, SEPARATOR, *command.written])
        if command.pinned:
            edit.set(container, "image", command.pinned)
        edit.add_env([*_environment(spec, container), *addition.env])
        mounts = [{"name": VOLUME, "mountPath": DEFAULT_PAI_DIR}, *addition.mounts]
        edit.extend(container, "volumeMounts", mounts)
        edit.extend(spec, "volumes", [{"name": VOLUME, "emptyDir": {}}, *addition.volumes])
        if addition.service_account:
            edit.set(spec, "serviceAccountName", addition.service_account)
        if group:
            edit.set(spec, SCHEDULING_GROUP, {"podGroupName": group})
        edit.finish(init_container(options, addition, spec, container))
        self.edited += [spec, container]
        role = f"{template.role} in " if len(siblings) > 1 else ""
        unknown = [] if template.rule else ["pairun does not know what its controller does"]
        return [f"{role}container {name_of(container) or 1}", *addition.notes, *unknown]


def _objects_in(document: Part) -> Iterator[TemplateOwner]:
    """The objects of a document: a List's items, and what has Pod templates in another object."""
    owners = [o for o in owners_in(document) if not is_added(o.root)]
    holders = [o for o in owners if any(templates_of(o)) or (o.known and o.root.get("spec"))]
    starts, ids = sorted(h.root.start for h in holders), {id(h.root) for h in holders}
    items = mappings_in(document.get("items")) if isinstance(document, Mapping) else []
    tops = {id(item) for item in items} or {id(document)}
    for owner in owners:
        root = owner.root
        has_inner = bisect_left(starts, root.end) > bisect_right(starts, root.start)
        if id(root) in ids or (id(root) in tops and not has_inner):
            yield owner


ANNOTATION = "pairun.io/inject"


def _not_chosen(owner: TemplateOwner, metadata: dict[str, Any], options: InjectOptions) -> str:
    """Why the user does not want pairun in an object; empty if it is chosen."""
    each = [mapping_at(m, ("annotations",)) for m in (metadata, owner.metadata)]
    given = [str(annotations[ANNOTATION]) for annotations in each if ANNOTATION in annotations]
    if given and given[0] == "false":
        return f"{ANNOTATION} is false"
    is_named = not options.only or f"{owner.kind}/{owner.name}" in options.only
    if not is_named and given[:1] != ["true"]:
        return f"{ANNOTATION} is not true"
    return ""


def _left_object(
    owner: TemplateOwner, templates: list[Template], options: InjectOptions
) -> _Left | None:
    """Why an object is left alone as a whole."""
    known, place = owner.known, owner.root.place
    name = f"{owner.kind}/{owner.name}"
    if options.only and not {name, ANNOTATED} & {*options.only}:
        return _Left(owner.label, "not named by --only")
    options.used.add(f"--only {name}")
    is_left = not templates or bool(known and known.refused)
    if is_left and (why := _not_chosen(owner, {}, options)):
        return _Left(owner.label, why)
    if known and known.refused and not (known.is_optional and options.kind_template):
        return _Left(owner.label, known.refused, place, "PR827")
    if templates:
        return None
    if known and known.empty:
        return _Left(owner.label, known.empty, place, "PR827")
    return _Left(owner.label, "no Pod template", place, "PR820")


def _left_template(template: Template, options: InjectOptions) -> _Left | None:
    """Why a template of an unknown kind is left alone."""
    path = ".".join(map(str, template.path))
    if path in options.kind_template:
        options.used.add(f"--kind-template {path}")
        return None
    why = f"pairun does not know what the controller of a {template.owner.kind} does with Pods"
    hint = f"if it keeps init containers and the command: --kind-template {path}"
    return _Left(template.label, why, template.spec.place, "PR820", hint)


def uninject(source: Source, problems: Problems) -> str:
    """Remove pairun from a manifest.

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


def _environment(spec: Mapping, container: Mapping) -> list[dict[str, Any]]:
    """The variables that PID 1 needs."""
    made = [field("FC_POD_UID", "metadata.uid"), field("FC_POD_NAME", "metadata.name")]
    if (seconds := grace_s(spec)) is not None:
        made.append({"name": GRACE, "value": f"{seconds:g}s"})
    if path := container.get("terminationMessagePath"):
        made.append({"name": TERMINATION, "value": str(path.plain())})
    return made


_OF_SPEC = ("initContainers", "volumes", "serviceAccountName", SCHEDULING_GROUP)
_OF_CONTAINER = ("command", "env", "volumeMounts", "image")


def check_edits(tree: Tree, made: str, edited: list[Mapping], problems: Problems) -> None:
    """Refuse an edit that changed more than the edited Pods: anchors may share text with others."""
    ids = {id(part) for part in edited}
    after = read_tree(Source(tree.source.file, tree.source.layer, made))
    for before, now in zip(tree.documents, without_beside(after), strict=False):
        if (path := _changed(before, now, ids, ())) is not None:
            message = (
                f"an anchor shares text of a Pod with {'.'.join(map(str, path))}, which must not "
                "change"
            )
            hint = "write what the alias names where it is used"
            problems.error("PR822", message, before.place, hint)
            return


def _changed(part: Part, now: Any, edited: set[int], path: Path) -> Path | None:
    """The path of the first value that changed, except those that an edit may change; or None."""
    part = target(part)
    if isinstance(part, Mapping) and isinstance(now, dict):
        keys = _OF_SPEC if part.get("containers") else _OF_CONTAINER
        allowed = keys if id(part) in edited else ()
        before = part.values()
        for key in dict.fromkeys((*before, *now)):
            if key in allowed:
                continue
            if key not in before or key not in now:
                return (*path, key)
            if (found := _changed(before[key], now[key], edited, (*path, key))) is not None:
                return found
        return None
    if isinstance(part, Sequence) and isinstance(now, list) and len(part.items) == len(now):
        children = enumerate(zip(part.items, now, strict=True))
        each = (_changed(item, value, edited, (*path, n)) for n, (item, value) in children)
        return next((found for found in each if found is not None), None)
    before_now = part.plain()
    return None if before_now == now and type(before_now) is type(now) else path

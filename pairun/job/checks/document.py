"""Checks a job file: its schema, the references between its names, and its ``extras``."""

from __future__ import annotations

import json
from collections.abc import Iterable

from pairun.base.fields import Path
from pairun.errors import Problem, Problems, did_you_mean, nearest
from pairun.job.model import RUNTIME_PLUGIN, Prerequisite, fc_name
from pairun.job.protocol import JOB_SCHEMA, ROLE_KEYS, home_of
from pairun.kube.ports import MAX_PORTS
from pairun.playbook.document.checking import Format, violations
from pairun.playbook.document.reading import Node, elements, entries
from pairun.playbook.keywords import EXPORT


def check_schema(node: Node, problems: Problems, *, stored: bool = False) -> None:
    """Report everything in a document that the schema does not allow.

    Args:
        stored: the cluster has accepted the job; an unknown key of its top level is a warning.
    """
    if _is_compose_file(node):
        problems.error(
            "PR501",
            "this is not a job: it looks like a file of Docker Compose",
            node.place,
            "create one to start from with `pairun new job`; see docs/jobs.md",
        )
        return
    misplaced = _misplaced(node)
    problems.extend(misplaced.values())

    def adjust(path: Path, at: Node, problem: Problem) -> Problem | None:
        if path[:1] == ("taskRoles",) and path[1:2] in misplaced:
            return None
        if path == () and at.value is None:
            return problem._replace(id="PR501", message="the file is empty")
        if path in {(), ("protocolVersion",)} and problem.id == "PR503":
            return problem._replace(id="PR501", hint=None)
        if path == ("protocolVersion",):
            return problem._replace(hint="add a line: protocolVersion: 2")
        is_unknown = problem.id == "PR502"
        if is_unknown and stored and len(path) == 1:
            problem = problem._replace(severity="warning")
        hint = _key_hint(path) if is_unknown else _command_hint(path, at)
        return problem._replace(hint=hint or problem.hint)

    form = Format("PR502", "PR503", "PR504", dotted=True, adjust=adjust)
    problems.extend(violations(node, JOB_SCHEMA, form))


def _misplaced(document: Node) -> dict[Path, Problem]:
    """A problem for each key of a role that is directly in ``taskRoles``, by its path there."""
    roles = document.get("taskRoles")
    misplaced: dict[Path, Problem] = {}
    above = None
    for name, value in roles.items() if roles else ():
        is_role = isinstance(value.value, dict) and any(k in ROLE_KEYS for k, _ in value.items())
        if name not in ROLE_KEYS or is_role:
            above = name
            continue
        misplaced[name,] = Problem(
            "PR503",
            f"'{name}' belongs to a role, but is in taskRoles itself",
            value.head,
            f"indent it deeper than '{above}:', the name of its role"
            if above
            else "write the name of the role above it, and indent it deeper than the name",
        )
    return misplaced


def _is_compose_file(document: Node) -> bool:
    if (services := document.get("services")) is None or document.get("taskRoles"):
        return False
    return all(isinstance(service.value, dict) for _, service in services.items())


def _key_hint(path: Path) -> str | None:
    """Where an unknown key belongs."""
    *above, key = map(str, path)
    if key in ("env", "environment"):
        return f"set variables with {EXPORT}"
    if not above and key in ("tasks", "patches", "phase"):
        return "it belongs in a playbook; a job adds tasks in extras.pairun.init or runtime"
    home = home_of(key) if above[:1] in ([], ["taskRoles"]) else None
    return f"it belongs in {home}" if home else None


def _command_hint(path: Path, at: Node) -> str | None:
    """How to write a command, for common mistakes."""
    if path[-1:] == ("commands",) and isinstance(at.value, str):
        script = at.value.strip()
        if "\n" in script:
            return "commands are a list: write '- |' in a line below, and indent the text under it"
        return f"commands are a list: [{json.dumps(script)}]"
    if path[-2:-1] == ("commands",) and isinstance(at.value, dict) and len(at.value) == 1:
        key, child = next(iter(at.items()))
        if isinstance(child.value, str | int | float) or child.value is None:
            text = f"{key}: {'' if child.value is None else child.value}".rstrip()
            return f"': ' makes a mapping of it; quote the command: {json.dumps(text)}"
    return None


REFERENCES = {"dockerImage": "dockerimage", "script": "script", "data": "data", "output": "output"}
"""A role's keys, and the types of the prerequisites that they name."""


def check_references(
    node: Node, prerequisites: tuple[Prerequisite, ...], problems: Problems
) -> None:
    """Report every prerequisite that a role names and the job does not define."""
    all_names = {p.name: None for p in prerequisites}
    of_type = {
        type_: {p.name: None for p in prerequisites if p.type == type_}
        for type_ in REFERENCES.values()
    }
    for _, role in entries(node, "taskRoles"):
        for key, type_ in REFERENCES.items():
            named = role.get(key)
            names = of_type[type_]
            if named is not None and isinstance(named.value, str) and named.value not in names:
                message = f"there is no prerequisite '{named.value}' of type {type_}"
                problems.error("PR505", message, named.place, _did_you_mean(named.value, names))
        for named in elements(role, "prerequisites"):
            if isinstance(named.value, str) and named.value not in all_names:
                message = f"there is no prerequisite '{named.value}'"
                problems.error("PR505", message, named.place, _did_you_mean(named.value, all_names))


def _did_you_mean(name: str, names: Iterable[str]) -> str:
    return did_you_mean(name, names) or "add it to the job's prerequisites"


def check_ports(node: Node, problems: Problems) -> None:
    """Report roles with more ports than a Pod can have; the schema checks each label."""
    for name, role in entries(node, "taskRoles"):
        ports = role.at(("resourcePerInstance", "ports"))
        counts = {p: n.value for p, n in ports.items() if type(n.value) is int} if ports else {}
        total = sum(({"ssh": 1, "http": 1} | counts).values())
        if ports and max(counts.values(), default=0) <= MAX_PORTS < total:
            message = (
                f"the role '{name}' has {total} ports with ssh and http; a Pod can have {MAX_PORTS}"
            )
            problems.error("PR503", message, ports.head)


def check_role_names(node: Node, problems: Problems) -> None:
    """Report roles whose Pods would have the same name."""
    first: dict[str, tuple[str, Node]] = {}
    for raw, role in entries(node, "taskRoles"):
        sanitised = fc_name(raw)
        if not sanitised:
            message = f"the role name '{raw}' has no letter or digit, so its Pods have no name"
            problems.error("PR507", message, role.key)
        elif sanitised in first:
            other, place = first[sanitised]
            message = f"the roles '{other}' and '{raw}' both become '{sanitised}'"
            problems.error("PR507", message, role.key, also=[("the other role", place.head)])
        else:
            first[sanitised] = raw, role


def check_deployments(node: Node, problems: Problems) -> None:
    """Report deployments with the same name, and a selected one that does not exist."""
    first: dict[str, Node] = {}
    for entry in elements(node, "deployments"):
        name = entry.get("name")
        if name is None or not isinstance(name.value, str):
            continue
        if name.value in first:
            message = f"two deployments are named '{name.value}'"
            problems.error(
                "PR508", message, name.place, also=[("the first one", first[name.value].place)]
            )
        first.setdefault(name.value, name)
    chosen = node.at(("defaults", "deployment"))
    if chosen is not None and isinstance(chosen.value, str) and chosen.value not in first:
        hint = did_you_mean(chosen.value, first) or "add it to the job's deployments"
        problems.error("PR515", f"there is no deployment '{chosen.value}'", chosen.place, hint)


_KEYS = (
    RUNTIME_PLUGIN,
    "allowAzCopy",
    "enableLocalStorage",
    "forceNodes",
    "gangAllocation",
    "hivedScheduler",
    "jobStatusChangeNotification",
    "pairun",
    "storages",
    "submitFrom",
)
_CLOSE = 0.85
"""Higher than elsewhere: anyone may add extras, and most unknown ones are no typos."""
_STORAGE_KEYS = ("name", "mountPath")


def check_extras(document: Node, problems: Problems) -> None:
    """Warn of keys that are almost a known one, and of storages that are skipped."""
    extras = document.get("extras")
    if extras is None:
        return
    for key, child in extras.items():
        if key in _KEYS:
            continue
        if close := nearest(key, _KEYS, _CLOSE):
            message = f"unknown key '{key}' in extras has no effect"
            problems.warning("PR502", message, child.head, f"did you mean '{close}'?")
    storages = extras.get("storages")
    if storages is None or storages.value is None:
        return
    if not isinstance(storages.value, list):
        message = "extras.storages must be a list; none of it is mounted"
        hint = "each item is a mapping: {name: CLAIM, mountPath: PATH}"
        problems.warning("PR503", message, storages.place, hint)
    for item in storages.elements():
        _check_storage(item, problems)


def _check_storage(item: Node, problems: Problems) -> None:
    if not isinstance(item.value, dict):
        text = item.value if isinstance(item.value, str) else "CLAIM"
        message = "an item of extras.storages must be a mapping; this one is skipped"
        problems.warning("PR503", message, item.place, f"write {{name: {text}}}")
        return
    for key, child in item.items():
        if key not in _STORAGE_KEYS:
            message = f"unknown key '{key}' in an item of extras.storages has no effect"
            problems.warning("PR502", message, child.head, did_you_mean(key, _STORAGE_KEYS))
        elif isinstance(child.value, dict | list):
            problems.warning(
                "PR503", f"{key} in an item of extras.storages must be text", child.place
            )
    name = item.get("name")
    if name is None or name.value in (None, ""):
        message = "'name' is missing in an item of extras.storages, which is skipped"
        problems.warning("PR504", message, item.place, "it names a PersistentVolumeClaim")

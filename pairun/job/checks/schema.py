"""Checks a job file against the protocol's schema, and reports each problem at its place."""

from __future__ import annotations

import json

from pairun.contract.kinds import Path
from pairun.errors import Problem, Problems
from pairun.job.protocol import ROLE_KEYS, SCHEMA, home_of
from pairun.playbook.document.checking import Format, violations
from pairun.playbook.document.reading import Node
from pairun.playbook.keywords import EXPORT


def check_schema(node: Node, problems: Problems) -> None:
    """Report everything in a document that the schema does not allow."""
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
        is_unknown = problem.id == "PR502"
        hint = _key_hint(path) if is_unknown else _command_hint(path, at)
        return problem._replace(hint=hint or problem.hint)

    form = Format("PR502", "PR503", "PR504", dotted=True, adjust=adjust)
    problems.extend(violations(node, SCHEMA, form))


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
            value.key or value.place,
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

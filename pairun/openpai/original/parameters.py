"""Computes a plugin's parameters as OpenPAI's own runtime passes them.

It reads the job file with PyYAML, converts the parameters to their Python text, replaces the tags
in that text, and reads the result as YAML again.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from pairun.job.model import RUNTIME_PLUGIN, Job, Role
from pairun.job.parameters import role_scope

_TAG = re.compile(r"<%\s*(\$[\s\S]*?)\s*%>")


class InitFails(Exception):
    """The original's init phase exits 1; the text gives the reason."""


def documents(job: Job) -> Any:
    """The job file as PyYAML reads it.

    Raises:
        InitFails: PyYAML cannot read it.
    """
    try:
        return yaml.safe_load(job.text)
    except (yaml.YAMLError, ValueError) as e:
        raise InitFails(f"the job file is no YAML 1.1: {_first_line(e)}") from None


def listed_plugins(job: Job) -> list[Any]:
    """The items of the job's plugin list, as the original runtime reads them."""
    document = documents(job)
    extras = document.get("extras") if isinstance(document, dict) else None
    items = extras.get(RUNTIME_PLUGIN) if isinstance(extras, dict) else None
    return items if isinstance(items, list) else []


def passed_on(parameters: Any, job: Job, role: Role) -> Any:
    """The parameters that the plugin's program receives.

    Args:
        parameters: as PyYAML reads them from the job file.
        job: the job.
        role: the role that uses the plugin.

    Raises:
        InitFails: the original fails on a tag or a text.
    """
    scope = role_scope(job, role)

    def value_of(tag: re.Match[str]) -> str:
        node, _ = scope.look_up(tag[1])
        if node is None:
            raise InitFails(f"{tag[0]} names nothing (KeyError)")
        value = node.plain()
        if not isinstance(value, str):
            raise InitFails(f"{tag[0]} is no text (TypeError)")
        return value

    text = _TAG.sub(value_of, str(parameters))
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as e:
        raise InitFails(f"the parameters become invalid YAML: {_first_line(e)}") from None


def _first_line(error: Exception) -> str:
    problem = getattr(error, "problem", None)
    return str(problem or error).splitlines()[0]

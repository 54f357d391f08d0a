"""The names in expressions of a job's own layer, and tags that people confuse with them."""

from __future__ import annotations

from typing import Any

from pairun.errors import Problems
from pairun.job.hiding import leaves
from pairun.job.model import Job
from pairun.job.templates import TAG, as_text, render_secrets, tag_key, tag_path, tag_place
from pairun.module import Secret
from pairun.playbook.document.reading import Node
from pairun.playbook.expressions.views import Unknown

_SECRETS_UNKNOWN = Unknown("the values of the job's secrets, which the cluster keeps")
_NAMES = ("secrets", "parameters")


def expression_secrets(job: Job) -> Any:
    """The job's own secrets as its layer uses them: each value is a `Secret`."""
    if job.secrets_unknown:
        return _SECRETS_UNKNOWN
    return {} if job.secrets is None else _secret(job.secrets.plain())


def _secret(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _secret(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_secret(v) for v in value]
    return None if value is None else Secret(as_text(value))


def expression_parameters(job: Job) -> Any:
    """The job's parameters, with secrets inserted as in the job's commands."""
    return {} if job.parameters is None else _rendered(job.parameters.plain(), job.secrets)


def _rendered(value: Any, secrets: Node | None) -> Any:
    if isinstance(value, dict):
        return {k: _rendered(v, secrets) for k, v in value.items()}
    if isinstance(value, list):
        return [_rendered(v, secrets) for v in value]
    return render_secrets(value, secrets) if isinstance(value, str) else value


def check_layer_tags(layer: Node | None, problems: Problems) -> None:
    """Report tags of the job protocol in ``extras.pairun``, where they have no effect."""
    for leaf in leaves(layer) if layer else ():
        for tag in TAG.finditer(leaf.value) if isinstance(leaf.value, str) else ():
            if (key := tag_key(tag)) is not None:
                problems.error(
                    "PR306",
                    f"{tag[0]} is a tag of the job protocol, which is not replaced here",
                    tag_place(leaf, tag[0]),
                    _instead(key),
                )


def _instead(key: str) -> str:
    first, *path = tag_path(key)
    name = first.removeprefix("$")
    if name in _NAMES and path:
        return f"write an expression: {{{{ {'.'.join([name, *path])} }}}}"
    return f"expressions see {', '.join(_NAMES)}, job, cluster and results: {{{{ parameters.x }}}}"

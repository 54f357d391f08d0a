"""``--set PATH=VALUE`` for Pod settings, and an error for each option that it replaces."""

from __future__ import annotations

import argparse
from typing import Any

from pairun.errors import PairunError, Place, Problems, Source, did_you_mean
from pairun.playbook.document.checking import Format
from pairun.playbook.document.reading import Node, node_of, read_text
from pairun.playbook.drafts import merged
from pairun.playbook.podfragment import APP, COMMAND_LINE, by_name, listed
from pairun.playbook.podkeys import FIELDS, flow
from pairun.playbook.podschema import DEFAULTS_SCHEMA, pod_mistakes, split_path

_REMOVED = {
    **{
        f"--{key.replace('_', '-')}": f"{FIELDS.get(key, key)}=VALUE"
        for key in ("queue", "scheduler_name", "priority_class", "runtime_class", "shm",
                    "image_pull_policy", "pod_security")
    },
    "--node-selector": "spec.nodeSelector.VALUE",
    "--toleration": "spec.tolerations=[VALUE]",
    "--init-requests": "init_resources.requests.VALUE",
    "--init-limits": "init_resources.limits.VALUE",
    "--app-uid": f"{APP}.securityContext.runAsUser=VALUE",
    "--host-network": "spec.hostNetwork=true",
    "--no-host-network": "spec.hostNetwork=false",
    "--suspend": "suspend=true",
    "--no-suspend": "suspend=false",
}  # fmt: skip
"""The options of pairun 0.3, and what stands for each."""
_USAGE = Format("PR801", "PR801", "PR801")


def add_pod_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare ``--set``."""
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", dest="pod",
                        help="a setting of the Pods, such as spec.priorityClassName=high; "
                        "overrides the job's (docs/pod.md)")  # fmt: skip
    for option, new in _REMOVED.items():
        how: dict[str, Any] = {"action": "append_const", "const": option}
        if "VALUE" in new:
            how = {"action": "append", "type": f"{option}={{}}".format}
        parser.add_argument(option, **how, dest="removed", help=argparse.SUPPRESS)


def given_settings(args: argparse.Namespace) -> Node | None:
    """The settings from a person's options; None if there are none.

    Args:
        args: the arguments of a command with the options of `add_pod_arguments`.

    Raises:
        PairunError: a path or a value is invalid, or an option is one of 0.3.
    """
    problems = Problems()
    for given in args.removed or ():
        option, _, value = given.partition("=")
        word = _toleration(value) if option == "--toleration" else value
        new = _REMOVED[option].replace("VALUE", word)
        quoted = f"'{new}'" if "[" in new else new
        problems.error("PR801", f"{option} is gone", hint=f"write --set {quoted}")
    layer: Node | None = None
    for text in args.pod:
        if (node := _setting(text, problems)) is not None:
            layer = merged(layer, by_name(node, problems))
    problems.raise_errors()
    return layer


def _setting(text: str, problems: Problems) -> Node | None:
    """One setting as a layer; None with a problem if it is invalid."""
    path, equals, word = text.partition("=")
    steps, schema = split_path(path)
    if not (path and equals):
        problems.error("PR801", f"--set '{text}' must be PATH=VALUE")
        return None
    if isinstance(schema, list):
        hint = did_you_mean(steps[-1], schema) or "docs/pod.md shows the settings of Pods"
        problems.error("PR801", f"--set: there is no setting '{path}' of Pods", hint=hint)
        return None
    try:
        value = read_text(Source(f"--set {path}", COMMAND_LINE, word)).plain() if word else ""
    except PairunError as e:
        problems.extend(p._replace(id="PR801") for p in e.problems)
        return None
    if "string" in schema.get("type", ()) and isinstance(value, bool | int | float):
        value = word
    for step in reversed(steps):
        value = {step: value}
    node = node_of(listed(value), Place(Source(f"--set {path}", COMMAND_LINE, ""), 0, 0))
    mistakes = list(pod_mistakes(node, DEFAULTS_SCHEMA, _USAGE))
    problems.extend(mistakes)
    return None if mistakes else node


def _toleration(text: str) -> str:
    """A toleration of the form ``KEY[=VALUE][:EFFECT]`` as a mapping."""
    taint, colon, effect = text.partition(":")
    name, equals, value = taint.partition("=")
    made = {"key": name} if name else {}
    made |= {"operator": "Equal", "value": value} if equals else {"operator": "Exists"}
    return f"{{{flow(made | ({'effect': effect} if colon else {}))}}}"

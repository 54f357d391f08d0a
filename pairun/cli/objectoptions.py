"""The options of every command that makes a job's objects; ``--set PATH=VALUE`` is one of them."""

from __future__ import annotations

import argparse
import os
import re

from pairun.cli.options import add_removed, add_roots
from pairun.engines.manifest.choices import ENGINES, IMAGE, ManifestOptions, Version
from pairun.engines.manifest.making import make
from pairun.errors import PairunError, Place, Problem, Problems, Source, did_you_mean
from pairun.job.podresources import GPU_RESOURCE
from pairun.kube.owners import Object
from pairun.playbook.document.checking import Format
from pairun.playbook.document.reading import Node, node_of, read_text
from pairun.playbook.drafts import merged
from pairun.playbook.podfragment import APP, COMMAND_LINE, by_name, listed
from pairun.playbook.podkeys import FIELDS, flow
from pairun.playbook.podschema import DEFAULTS_SCHEMA, pod_mistakes, split_path


def add_object_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of every command that makes a job's objects."""
    parser.add_argument(
        "--engine", choices=ENGINES, required=True, help="the controller that starts the Pods"
    )
    parser.add_argument("--image", metavar="IMAGE",
                        help=f"pairun's image, for the init container (default: ${IMAGE})")  # fmt: skip
    parser.add_argument("--name", metavar="NAME",
                        help="name of the workload, and the prefix of its other objects "
                        "(default: made of the job's name)")  # fmt: skip
    parser.add_argument("--namespace", "-n", metavar="NAMESPACE",
                        help="namespace of all objects (default: kubectl's)")  # fmt: skip
    parser.add_argument("--kubernetes-version", metavar="VERSION",
                        help="the cluster's version, such as 1.28; refuse what it does not support")  # fmt: skip
    parser.add_argument("--gpu-resource", metavar="NAME", default=GPU_RESOURCE,
                        help=f"the cluster's resource name of a GPU (default: {GPU_RESOURCE})")  # fmt: skip
    parser.add_argument("--log-host-path", metavar="DIR",
                        help="the node's folder for logs (default: /var/log/pai with framework; with the "
                        "others, logs are deleted with the Pod)")  # fmt: skip
    parser.add_argument("--image-volume", action="store_true",
                        help="mount pairun's image in the user's container instead of copying the "
                        "program (Kubernetes 1.35, or 1.33 with the feature gate ImageVolume)")  # fmt: skip
    parser.add_argument("--user", default="user", help="who submits the job")
    add_pod_arguments(parser)
    add_roots(parser, "a content root that overrides those of PAIRUN_PATH, to review the job with")


def make_objects_of(args: argparse.Namespace) -> tuple[ManifestOptions, list[Object], Problems]:
    """Make the objects of ``args.job``; see `make`."""
    options = ManifestOptions(
        engine=args.engine,
        image=args.image or os.environ.get(IMAGE, ""),
        namespace=args.namespace,
        version=_version(args.kubernetes_version),
        gpu_resource=args.gpu_resource,
        log_host_path=args.log_host_path,
        image_volume=args.image_volume,
        user=args.user,
        roots=args.root,
        settings=given_settings(args),
    )
    return make(args.job, args.name, options, os.environ, args.vault)


def _version(text: str | None) -> Version | None:
    match = re.fullmatch(r"v?([0-9]{1,3})\.([0-9]{1,4})(?:[.+-].*)?\+?", text or "")
    if text is not None and match is None:
        message = f"--kubernetes-version '{text}' is not a version"
        raise PairunError(Problem("PR801", message, hint="as in 1.28"))
    return match and (int(match[1]), int(match[2]))


# --- settings of Pods -----------------------------------------------------------------------------

_REMOVED = {
    **{
        f"--{key.replace('_', '-')}": f"{FIELDS.get(key, key)}={{}}"
        for key in ("queue", "scheduler_name", "priority_class", "runtime_class", "shm",
                    "image_pull_policy", "pod_security")
    },
    "--node-selector": "spec.nodeSelector.{}",
    "--toleration": "spec.tolerations=[{}]",
    "--init-requests": "init_resources.requests.{}",
    "--init-limits": "init_resources.limits.{}",
    "--service-account": "spec.serviceAccountName={}",
    "--app-uid": f"{APP}.securityContext.runAsUser={{}}",
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
    add_removed(parser, _REMOVED)


def given_settings(args: argparse.Namespace) -> Node | None:
    """The settings from a person's options; None if there are none.

    Args:
        args: the arguments of a command with the options of `add_pod_arguments`.

    Raises:
        PairunError: a path or a value is invalid, or an option is one of 0.3.
    """
    problems = Problems()
    for option, value in args.removed:
        new = _REMOVED[option].format(_toleration(value) if option == "--toleration" else value)
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

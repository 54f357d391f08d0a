"""``pairun manifest JOB``: everything that a job needs in a cluster, as YAML for kubectl."""

from __future__ import annotations

import argparse
import os
import re
import secrets
import sys
from collections.abc import Sequence

import attrs

import pairun
from pairun.engines.manifest.objectnames import default_name
from pairun.engines.manifest.objects import is_image, make_objects
from pairun.engines.manifest.options import (
    ENGINES,
    GPU_RESOURCE,
    SERVICE_ACCOUNT,
    Engine,
    Object,
    Options,
    Version,
)
from pairun.engines.manifest.versions import lowest
from pairun.errors import PairunError, Problems
from pairun.job.model import Job
from pairun.job.writing import as_yaml
from pairun.playbook.content import open_content
from pairun.playbook.effective import Layers
from pairun.report.problems import print_problems
from pairun.review.jobreview import review_job
from pairun.secrets.vault import Vault

IMAGE = "PAIRUN_IMAGE"
KEY_BYTES = 32
_HIGHEST_UID = 2**31 - 1


@attrs.frozen(kw_only=True)
class Made:
    """A job that was read, and its objects.

    Attributes:
        job: the job.
        options: what was chosen for it.
        objects: in the order in which they are to be created.
        vault: masks the job's secrets.
    """

    job: Job
    options: Options
    objects: Sequence[Object]
    vault: Vault


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_object_arguments(parser)


def add_object_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what every command that makes a job's objects takes."""
    parser.add_argument("job", metavar="JOB", help="the job file; - for standard input")
    parser.add_argument("--engine", choices=ENGINES, required=True, help="what starts the Pods")
    parser.add_argument("--image", metavar="IMAGE",
                        help=f"pairun's image, for the init container (default: ${IMAGE})")  # fmt: skip
    parser.add_argument("--name", metavar="NAME",
                        help="of the workload; what else is made is called NAME-... "
                        "(default: made of the job's name)")  # fmt: skip
    parser.add_argument("--namespace", "-n", metavar="NAMESPACE",
                        help="of all objects (default: whatever kubectl is set to)")  # fmt: skip
    parser.add_argument("--kubernetes-version", metavar="VERSION",
                        help="the cluster's, as 1.28: what it does not have is refused")  # fmt: skip
    parser.add_argument("--service-account", metavar="NAME", default=SERVICE_ACCOUNT,
                        help=f"whose API token init gets (default: {SERVICE_ACCOUNT})")  # fmt: skip
    parser.add_argument("--app-uid", metavar="UID", type=int,
                        help="who the user's container runs as (default: whom its image says)")  # fmt: skip
    parser.add_argument("--gpu-resource", metavar="NAME", default=GPU_RESOURCE,
                        help=f"what the cluster calls a GPU (default: {GPU_RESOURCE})")  # fmt: skip
    parser.add_argument("--host-network", action=argparse.BooleanOptionalAction,
                        help="Pods have their node's network (default: with framework only)")  # fmt: skip
    parser.add_argument("--log-host-path", metavar="DIR",
                        help="logs go to this folder of the node (default: /var/log/pai with "
                        "framework, else they go with the Pod)")  # fmt: skip
    parser.add_argument("--user", default="user", help="who submits the job")
    parser.add_argument("--root", action="append", default=[], metavar="DIR",
                        help="a content root above those of PAIRUN_PATH, to review the job with")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Print the objects; 0 when all could be made, else 1."""
    made = make(args)
    if made is None:
        return 1
    text = "---\n".join(as_yaml(each) for each in made.objects)
    sys.stdout.write("".join(f"# {line}\n" for line in _comments(args.job, made)) + text)
    return 0


def make(args: argparse.Namespace) -> Made | None:
    """Review a job as ``--dry-run`` does and make its objects; prints every problem.

    Args:
        args: what `add_object_arguments` declares.

    Returns:
        The objects, or None when a problem is an error.

    Raises:
        PairunError: an argument is wrong.
    """
    usage = Problems()
    version = _version(args.kubernetes_version, usage)
    _check_arguments(args, usage)
    usage.raise_errors()
    found = Problems()
    image = args.image or os.environ.get(IMAGE, "")
    if not is_image(image):
        found.error(
            "PR782",
            "the init container has no image" if not image else f"'{image}' is no image",
            hint=f"--image IMAGE, or the variable {IMAGE}: pairun's image as the cluster pulls it",
        )
    layers = Layers(open_content(args.root, os.environ))
    review = review_job(args.job, layers, args.user, [])
    found.extend(review.problems)
    objects: list[Object] = []
    options = None
    if review.job is not None:
        engine: Engine = args.engine
        options = Options(
            engine=engine,
            image=image,
            name=args.name or default_name(review.job, engine),
            namespace=args.namespace,
            service_account=args.service_account,
            app_uid=args.app_uid,
            gpu_resource=args.gpu_resource,
            host_network=args.host_network,
            log_host_path=args.log_host_path,
            version=version,
            grace_s={p.role.name: p.plans["runtime"].grace_s for p in review.plans},
            rendezvous_key=secrets.token_bytes(KEY_BYTES),
        )
        if len(review.plans) == len(review.job.roles):
            try:
                objects = make_objects(review.job, options, found)
            except PairunError:
                objects = []  # every problem is among those found
    print_problems(found, vault=review.vault)
    if found.errors or review.job is None or options is None:
        return None
    return Made(job=review.job, options=options, objects=objects, vault=review.vault)


def _comments(path: str, made: Made) -> list[str]:
    feature = lowest(made.objects)
    source = "standard input" if path == "-" else path
    lines = [
        f"Needs Kubernetes {feature}, for {feature.name}.",
        f"Made by pairun {pairun.__version__} of {source}: kubectl apply -f FILE",
        "It holds secrets, and a key that is new each time: apply one file once.",
    ]
    return [" ".join(line.split()) for line in lines]


def _version(text: str | None, wrong: Problems) -> Version | None:
    if text is None:
        return None
    found = re.fullmatch(r"v?([0-9]{1,3})\.([0-9]{1,4})(?:[.+-].*)?\+?", text)
    if found is None:
        wrong.error("PR801", f"--kubernetes-version {text} is no version", hint="such as 1.28")
        return None
    return int(found[1]), int(found[2])


def _check_arguments(args: argparse.Namespace, wrong: Problems) -> None:
    for option, value, pattern in (
        ("--namespace", args.namespace, "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"),
        ("--service-account", args.service_account, "[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?"),
        ("--gpu-resource", args.gpu_resource, "[a-z0-9][-a-z0-9.]*/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"),
        ("--log-host-path", args.log_host_path, "/[^\0]*"),
        ("--user", args.user, "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"),
    ):  # fmt: skip
        if value is not None and not re.fullmatch(pattern, value):
            wrong.error("PR801", f"{option} '{value}' is nothing that Kubernetes takes there")
    if args.app_uid is not None and not 0 <= args.app_uid <= _HIGHEST_UID:
        wrong.error("PR801", f"--app-uid {args.app_uid} is no user's number")

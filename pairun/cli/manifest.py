"""``pairun manifest JOB``: the objects that a job needs in a cluster, as YAML for kubectl."""

from __future__ import annotations

import argparse
import os
import sys

import pairun
from pairun.cli.options import add_roots
from pairun.engines.manifest.making import IMAGE, Made, Request, make
from pairun.engines.manifest.options import ENGINES, GPU_RESOURCE, SERVICE_ACCOUNT
from pairun.engines.manifest.versions import lowest
from pairun.job.writing import as_yaml
from pairun.report.problems import print_problems


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
    add_roots(parser, "a content root above those of PAIRUN_PATH, to review the job with")


def request_of(args: argparse.Namespace) -> Request:
    """What the arguments ask for; `add_object_arguments` declares them."""
    return Request(
        job=args.job,
        engine=args.engine,
        image=args.image or os.environ.get(IMAGE, ""),
        name=args.name,
        namespace=args.namespace,
        kubernetes_version=args.kubernetes_version,
        service_account=args.service_account,
        app_uid=args.app_uid,
        gpu_resource=args.gpu_resource,
        host_network=args.host_network,
        log_host_path=args.log_host_path,
        user=args.user,
        roots=args.root,
    )


def run(args: argparse.Namespace) -> int:
    """Print the objects; 0 when all could be made, else 1."""
    made = make(request_of(args), dict(os.environ))
    print_problems(made.problems, vault=made.vault)
    if made.problems.errors:
        return 1
    text = "---\n".join(as_yaml(each) for each in made.objects)
    sys.stdout.write("".join(f"# {line}\n" for line in _comments(args.job, made)) + text)
    return 0


def _comments(path: str, made: Made) -> list[str]:
    feature = lowest(made.objects)
    source = "standard input" if path == "-" else path
    lines = [
        f"Needs Kubernetes {feature}, for {feature.name}.",
        f"Made by pairun {pairun.__version__} of {source}: kubectl apply -f FILE",
        "Holds secrets and a new random key: apply one file once.",
    ]
    return [" ".join(line.split()) for line in lines]

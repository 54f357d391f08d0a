"""The options of every command that makes a job's objects."""

from __future__ import annotations

import argparse
import os

from pairun.cli.options import add_roots
from pairun.cli.podoptions import add_pod_arguments, given_settings
from pairun.engines.manifest.choices import ENGINES, SERVICE_ACCOUNT
from pairun.engines.manifest.making import IMAGE, Request
from pairun.job.podresources import GPU_RESOURCE


def add_object_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of every command that makes a job's objects."""
    parser.add_argument("job", metavar="JOB", help="the job file; - for standard input")
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
    parser.add_argument("--service-account", metavar="NAME", default=SERVICE_ACCOUNT,
                        help=f"the service account of the init container (default: {SERVICE_ACCOUNT})")  # fmt: skip
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


def request_of(args: argparse.Namespace) -> Request:
    """Read the arguments that `add_object_arguments` declares."""
    return Request(
        job=args.job,
        engine=args.engine,
        image=args.image or os.environ.get(IMAGE, ""),
        name=args.name,
        namespace=args.namespace,
        kubernetes_version=args.kubernetes_version,
        service_account=args.service_account,
        gpu_resource=args.gpu_resource,
        log_host_path=args.log_host_path,
        image_volume=args.image_volume,
        user=args.user,
        roots=args.root,
        pod=given_settings(args),
    )

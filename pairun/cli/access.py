"""The options that select a cluster."""

from __future__ import annotations

import argparse

from pairun.engines.kubernetes.kubeconfig import Access


def add_access(parser: argparse.ArgumentParser, *, namespace: bool = True) -> None:
    """Declare the options that select a cluster.

    Args:
        parser: of the command.
        namespace: whether to declare ``--namespace``, too.
    """
    parser.add_argument("--kubeconfig", metavar="FILE",
                        help="the kubeconfig (default: KUBECONFIG, else ~/.kube/config, "
                        "else this Pod's service account)")  # fmt: skip
    parser.add_argument("--context", metavar="CONTEXT",
                        help="a context of the kubeconfig (default: its current one)")  # fmt: skip
    if namespace:
        parser.add_argument("--namespace", "-n", metavar="NAMESPACE",
                            help="where the job is (default: the context's namespace)")  # fmt: skip


def access_of(args: argparse.Namespace) -> Access:
    """The cluster that the options select."""
    return Access(args.kubeconfig, args.context, args.namespace)

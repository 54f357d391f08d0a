"""Shared by commands: options, JSON output, the exit code of a refusal."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pairun.base.durations import parse_duration
from pairun.errors import PairunError, Problem

if TYPE_CHECKING:
    from pairun.engines.kubernetes.cluster import Cluster


def duration_s(option: str, text: str) -> float:
    """The value of an option that is a duration, in seconds.

    Args:
        option: the option with its dashes.
        text: its value.

    Raises:
        PairunError: the value is not a duration (PR801).
    """
    seconds = parse_duration(text)
    if seconds is None:
        hint = f"did you mean '{text}s'?" if text.isdigit() else "as in 500ms, 30s, 1h30m"
        raise PairunError(Problem("PR801", f"{option} {text} is not a duration", hint=hint))
    return seconds


def add_roots(parser: argparse.ArgumentParser, meaning: str) -> None:
    """Declare ``--root DIR``, which may be repeated.

    Args:
        meaning: what the command does with a content root, for the help.
    """
    parser.add_argument("--root", action="append", default=[], metavar="DIR", help=meaning)


def add_removed(parser: argparse.ArgumentParser, options: Mapping[str, str]) -> None:
    """Declare options of 0.3; ``removed`` gets pairs of option and value.

    Args:
        options: what stands for each; ``{}`` is its value.
    """
    for option, new in options.items():
        how: dict[str, Any] = {"action": "append_const", "const": (option, "")}
        if "{}" in new:
            how = {"action": "append", "type": lambda value, option=option: (option, value)}
        parser.add_argument(option, **how, dest="removed", help=argparse.SUPPRESS, default=[])


def add_color(parser: argparse.ArgumentParser) -> None:
    """Declare ``--color WHEN``."""
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto",
                        help="when to use colours; auto: on a terminal, unless NO_COLOR is set")  # fmt: skip


def add_access(parser: argparse.ArgumentParser, *, namespace: bool = True) -> None:
    """Declare the options that select a cluster.

    Args:
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


def cluster_of(args: argparse.Namespace) -> Cluster:
    """Open the cluster that the options select.

    Raises:
        PairunError: the kubeconfig cannot be used.
    """
    from pairun.engines.kubernetes.kubeconfig import Access, connect

    return connect(Access(args.kubeconfig, args.context, args.namespace), args.vault)


def print_json(document: Mapping[str, Any], indent: int | None = 2) -> None:
    """Print a document on standard output, in ASCII: no terminal interprets or rejects it.

    Args:
        document: what is printed.
        indent: how many blanks a level has; None for one line.
    """
    print(json.dumps(document, indent=indent))


def refuse(
    refusal: PairunError, args: argparse.Namespace, data: Callable[..., Mapping[str, Any]]
) -> int:
    """Print a refusal as JSON if the command's output is JSON, else raise it; returns the exit code.

    Args:
        refusal: what was refused.
        args: the arguments of a command with ``--json``.
        data: makes the document from the problems and the vault.
    """
    if not args.json:
        raise refusal
    print_json(data(refusal.problems, args.vault))
    return refusal_code(refusal)


def refusal_code(refusal: PairunError) -> int:
    """The exit code of a command that could not start: 2 for wrong usage, else 1."""
    return 2 if all(p.id == "PR801" for p in refusal.problems) else 1

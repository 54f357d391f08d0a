"""``pairun manifest JOB``: print a job's objects in a cluster, as YAML for kubectl."""

from __future__ import annotations

import argparse
import os
import sys

import pairun
from pairun.cli.objectoptions import add_object_arguments, request_of
from pairun.engines.manifest.making import Made, make
from pairun.engines.manifest.versions import lowest
from pairun.job.writing import as_yaml
from pairun.report.problems import print_problems


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_object_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Print the objects; returns 0 if pairun could make all of them, else 1."""
    made = make(request_of(args), dict(os.environ), args.vault)
    print_problems(made.problems, args.vault)
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

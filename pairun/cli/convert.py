"""``pairun convert``: a YARN-era job or a Framework as a job file of protocol v2."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterator

from pairun.cli.streams import say
from pairun.errors import Problems
from pairun.job.jobfile import load_job
from pairun.job.model import Job
from pairun.job.planning import secrets_of
from pairun.job.yarn import NOT_CARRIED
from pairun.report.problems import print_problems
from pairun.secrets.vault import Vault

_WIDTH = 94


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="a job of OpenPAI on YARN, a Framework object, or a job of protocol v2, "
        "which stays as it is; - is standard input",
    )


def run(args: argparse.Namespace) -> int:
    """Print the job files; returns 0 if pairun could read all of them, else 1."""
    code = 0
    for path in args.files:
        job, problems = load_job(path)
        args.vault.add(secrets_of(job) if job else ())
        if job is not None:
            if len(args.files) > 1:
                print(f"---\n# {path}")
            comments = "".join(f"# {line}\n" for line in _comments(job, problems, args.vault))
            sys.stdout.write(comments + job.text + "\n" * (not job.text.endswith("\n")))
            sys.stdout.flush()
            source = job.node.place.source
            if source.file == path and job.text == source.text:
                say(f"{path} is a job of protocol v2 already: unchanged")
        else:
            code = 1
        # The user knows that pairun converts the file.
        print_problems((p for p in problems if p.id != "PR738"), args.vault)
    return code


def _comments(job: Job, problems: Problems, vault: Vault) -> Iterator[str]:
    """The comments above a converted file: its origin, and what the conversion loses."""
    source = job.node.place.source
    if job.text == source.text:
        return
    yield f"Converted by pairun from {source.file}, a job of OpenPAI on YARN."
    for p in problems:
        if p.id in NOT_CARRIED and p.place:
            text = vault.text(f"{p.id} line {p.place.line}: {p.message}; {p.hint}")
            yield from textwrap.wrap(text, _WIDTH, initial_indent="- ", subsequent_indent="  ")

"""``pairun run``: run every instance of a job on this machine."""

from __future__ import annotations

import argparse
import getpass
import os
import sys

import attrs

from pairun.base.runfolders import RUNS
from pairun.cli.options import add_color, add_roots, duration_s
from pairun.cli.streams import give_up_stdout, say, unwritable
from pairun.engines.local.capacity import check_capacity
from pairun.engines.local.jobrun import LocalRun, Options, RunOutcome
from pairun.engines.local.precheck import check
from pairun.engines.local.runreport import run_report
from pairun.errors import PairunError, Problems
from pairun.formats.jsyaml import dialect_named
from pairun.job.checks.unknownsecrets import unknown_secrets
from pairun.job.hiding import hide_lines
from pairun.job.jobfile import load_job
from pairun.job.model import Job
from pairun.job.planning import secrets_of
from pairun.job.sizing import resized
from pairun.playbook.content import open_content
from pairun.playbook.policy import read_policy
from pairun.report.live.view import open_view
from pairun.report.problems import print_problems


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("job", metavar="JOB", help="the job file; - for standard input")
    parser.add_argument("--role", action="append", default=[], metavar="ROLE",
                        help="run this role only; repeat for several")  # fmt: skip
    parser.add_argument("--instances", action="append", default=[], metavar="[ROLE=]N",
                        help="run N instances of the role, or of every role")  # fmt: skip
    parser.add_argument("--workdir", metavar="DIR",
                        help="the folder for the run's files (default: pairun-run/JOB-NAME)")  # fmt: skip
    parser.add_argument("--grace", metavar="DURATION", default="30s",
                        help="time from SIGTERM to SIGKILL (default: 30s); the command gets 80 %%, "
                        "20 %% (at least 1 s) is reserved for exit handlers")  # fmt: skip
    parser.add_argument("--no-namespace", action="store_true",
                        help="use no namespaces; rewrite paths below /usr/local/pai instead")  # fmt: skip
    parser.add_argument("--overcommit", action="store_true",
                        help="run more instances than this machine has resources for")  # fmt: skip
    add_color(parser)
    add_roots(parser, "a content root that overrides those of PAIRUN_PATH")


def run(args: argparse.Namespace) -> int:
    """Run the job; returns the exit code of the first failed instance, or 0."""
    vault = args.vault
    job = _job(args)
    options = Options(
        workdir=args.workdir or os.path.join(RUNS, job.name),
        namespaces=not args.no_namespace,
        grace_s=duration_s("--grace", args.grace),
        roots=args.root,
    )
    warnings, limits = check(job, options, vault)
    print_problems(warnings, vault=vault)
    if not args.overcommit:
        check_capacity(sum(role.instances for role in job.roles))
    local = LocalRun(job, options, vault, say)
    many = "s" if len(local.instances) > 1 else ""
    say(
        f"{len(local.instances)} instance{many} in {options.workdir}; "
        "Ctrl-C stops, a second one kills"
    )
    labels = [each.label for each in local.instances]
    view = open_view(sys.stdout, labels, vault, color=args.color)
    outcome = local.run(view, limits)
    _print_recap(job, outcome, args)
    return outcome.exit_code


def _job(args: argparse.Namespace) -> Job:
    policy = read_policy(open_content(args.root, os.environ).playbooks("policy"), Problems())
    job, problems = load_job(args.job, user=_user(), dialect=dialect_named(policy.job_yaml))
    if job is None:
        raise PairunError(*problems.errors)
    args.vault.add(secrets_of(job))
    hide_lines(job.node, args.vault)
    print_problems((p for p in problems if p.severity == "warning"), args.vault)
    job = resized(job, args.role, args.instances)
    if unknown := list(unknown_secrets(job)):
        raise PairunError(*unknown)
    # A plugin needs its secrets to run, so an unknown secret in its parameters is an error.
    return attrs.evolve(job, secrets_unknown=False)


def _print_recap(job: Job, outcome: RunOutcome, args: argparse.Namespace) -> None:
    lost = outcome.lost
    if not isinstance(lost, BrokenPipeError):
        # imported here, because the terminal library takes 0.1 s
        from pairun.report.paper import paper
        from pairun.report.recap import print_run

        try:
            print_run(run_report(job, outcome), paper(sys.stdout, args.color), args.vault)
            sys.stdout.flush()
        except OSError as e:
            lost = lost or e
    if lost is not None:
        # The exit code must tell how the job ended, even if the output's reader is gone.
        give_up_stdout()
        say(f"{unwritable(lost)}; the log files in {outcome.workdir} hold everything")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "user"

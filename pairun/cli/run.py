"""``pairun run``: run every instance of a job on this machine."""

from __future__ import annotations

import argparse
import getpass
import os
import re
import sys
from collections.abc import Iterator, Sequence

import attrs

from pairun.base.runfolders import RUNS
from pairun.cli.options import add_color, add_roots, duration_s
from pairun.cli.streams import give_up_stdout, say, unwritable
from pairun.engines.local.capacity import check_capacity
from pairun.engines.local.jobrun import LocalRun, RunOptions, RunOutcome
from pairun.engines.local.precheck import check
from pairun.errors import PairunError, Problem, Problems, did_you_mean
from pairun.job.checks.surprises import job_warnings
from pairun.job.hiding import hide_lines
from pairun.job.jobfile import load_job
from pairun.job.jsyaml import dialect_named
from pairun.job.model import Job, Role
from pairun.job.planning import secrets_of
from pairun.job.templates import TAG, command_nodes, tag_key, tag_place
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
    options = RunOptions(
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
    warnings = [*job_warnings(job), *(p for p in problems if p.severity == "warning")]
    print_problems(warnings, args.vault)
    job = resized(job, args.role, args.instances)
    if unknown := list(unknown_secrets(job)):
        raise PairunError(*unknown)
    # A plugin needs its secrets to run, so an unknown secret in its parameters is an error.
    return attrs.evolve(job, secrets_unknown=False)


def _print_recap(job: Job, outcome: RunOutcome, args: argparse.Namespace) -> None:
    lost = outcome.lost
    if not isinstance(lost, BrokenPipeError):
        # imported here, because the terminal library takes 0.1 s
        from pairun.engines.local.runreport import run_report
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


def unknown_secrets(job: Job) -> Iterator[Problem]:
    """An error for each secret's tag in a command, if the job's secrets are unknown.

    Such a tag would stay in the script, where bash reads `<% $secrets.token %>` as a redirection.
    """
    if not job.secrets_unknown:
        return
    for role in job.roles:
        for node in command_nodes(job, role):
            for tag in TAG.finditer(node.value):
                if (tag_key(tag) or "").startswith("$secrets."):
                    message = f"the command of {role.name} needs {tag[0]}, whose value is unknown"
                    hint = "run the original job file, which has the values"
                    yield Problem("PR510", message, tag_place(node, tag[0]), hint)


def resized(job: Job, roles: Sequence[str], instances: Sequence[str]) -> Job:
    """The job with these roles and numbers of instances.

    Args:
        job: the whole job.
        roles: names of the roles to keep; empty keeps all.
        instances: ``N`` for every role, or ``ROLE=N``.

    Raises:
        PairunError: the role does not exist, or N is not a number from 1 to 999999.
    """
    problems = Problems()
    kept = [_role(job, name, problems) for name in roles] or list(job.roles)
    counts = _counts(job, instances, problems)
    problems.raise_errors()
    return attrs.evolve(
        job,
        roles=tuple(
            _with_instances(r, counts.get(r.name, r.instances)) for r in job.roles if r in kept
        ),
    )


def _counts(job: Job, instances: Sequence[str], problems: Problems) -> dict[str, int]:
    counts: dict[str, int] = {}
    for text in instances:
        name, _, number = text.rpartition("=")
        role = _role(job, name, problems) if name else None
        if not re.fullmatch("0*[1-9][0-9]{0,5}", number):
            problems.error("PR801", f"--instances {text}: N must be a number from 1 to 999999")
            continue
        for each in job.roles if not name else [role] if role else []:
            counts[each.name] = int(number)
    return counts


def _role(job: Job, name: str, problems: Problems) -> Role | None:
    role = job.role(name)
    if role is None:
        hint = did_you_mean(name, [r.name for r in job.roles])
        problems.error("PR509", f"there is no role '{name}'", hint=hint)
    return role


def _with_instances(role: Role, instances: int) -> Role:
    """A role with another number of instances; a limit equal to the old number changes with it."""
    return role._replace(
        instances=instances,
        min_failed=min(role.min_failed, instances),
        min_succeeded=instances
        if role.min_succeeded == role.instances
        else min(role.min_succeeded, instances),
    )

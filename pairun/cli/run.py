"""``pairun run``: every instance of a job on this machine."""

from __future__ import annotations

import argparse
import contextlib
import getpass
import os
import re
import sys

import attrs

from pairun.base.runfolders import RUNS
from pairun.cli.streams import give_up_stdout, unwritable
from pairun.engines.local.instance import PhaseRun
from pairun.engines.local.jobrun import (
    LAYER,
    LocalRun,
    Options,
    RunOutcome,
    base_environment,
    engine_environment,
)
from pairun.errors import PairunError, Problem, Problems, did_you_mean
from pairun.job.jobfile import load_job
from pairun.job.model import Job, Role
from pairun.job.planning import RUNTIME_ENV_UNKNOWN, plan_role, secrets_of
from pairun.module import parse_duration
from pairun.openpai.platform import platform_environment
from pairun.playbook.content import open_content
from pairun.playbook.document.reading import read_file
from pairun.playbook.effective import Layers
from pairun.report.problems import print_problems
from pairun.report.runsummary import InstanceReport, PhaseReport, RunReport, render_run
from pairun.report.terminal import Style
from pairun.secrets.vault import Vault


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("job", metavar="JOB", help="the job file; - for standard input")
    parser.add_argument("--role", action="append", default=[], metavar="ROLE",
                        help="run this role only; may be given again")  # fmt: skip
    parser.add_argument("--instances", action="append", default=[], metavar="[ROLE=]N",
                        help="run N instances of the role, or of every role")  # fmt: skip
    parser.add_argument("--workdir", metavar="DIR",
                        help="where everything of the run lies (default: pairun-run/JOB-NAME)")  # fmt: skip
    parser.add_argument("--grace", metavar="DURATION", default="30s",
                        help="from TERM to KILL of an instance (default: 30s); its command has that "
                        "less a fifth, 1s at least, which is for exit handlers")  # fmt: skip
    parser.add_argument("--no-namespace", action="store_true",
                        help="do without namespaces; paths below /usr/local/pai are rewritten")  # fmt: skip
    parser.add_argument("--root", action="append", default=[], metavar="DIR",
                        help="a content root above those of PAIRUN_PATH")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Run the job; returns the exit code of the first instance that failed, or 0."""
    job = _job(args)
    options = Options(
        workdir=args.workdir or os.path.join(RUNS, job.name),
        namespaces=not args.no_namespace,
        grace_s=_grace(args.grace),
        roots=args.root,
        color=Style(sys.stdout).on,
    )
    check(job, options)
    local = LocalRun(job, options, _say)
    many = "s" if len(local.instances) > 1 else ""
    _say(
        f"{len(local.instances)} instance{many} in {options.workdir}; "
        "Ctrl-C stops, a second one kills"
    )
    outcome = local.run()
    lost = outcome.lost
    try:
        report = render_run(_report(job, outcome), Style(sys.stdout))
        print(Vault(secrets_of(job)).text(report), flush=True)
    except OSError as e:
        lost = lost or e
    if lost is not None:
        # What became of the job counts, not who listened.
        give_up_stdout()
        _say(f"{unwritable(lost)}; the log files in {options.workdir} hold everything")
    return outcome.exit_code


def _say(line: str) -> None:
    """Print one line on standard error; that nobody listens is no reason to stop the job."""
    with contextlib.suppress(OSError):
        print(f"[pairun] {line}", file=sys.stderr, flush=True)


def check(job: Job, options: Options) -> None:
    """Make every role's plans, as its instances will, to find what is wrong before they start.

    Raises:
        PairunError: everything that is wrong.
    """
    problems = Problems()
    layers = Layers(open_content(options.roots, os.environ))
    engine = engine_environment(options, gang="")
    for role in job.roles:
        init, _ = platform_environment(job, role, 0, pod_uid="")
        plan_role(
            layers,
            job,
            role,
            env={
                "init": {**base_environment(), **init, **engine},
                "runtime": RUNTIME_ENV_UNKNOWN,
            },
            engine=read_file(LAYER, "engine"),
            problems=problems,
        )
    problems.raise_errors()


def _job(args: argparse.Namespace) -> Job:
    """The job with the roles and numbers of instances that are asked for."""
    job, problems = load_job(args.job, user=_user())
    if job is None:
        raise PairunError(*problems.errors)
    print_problems(p for p in problems if p.severity == "warning")
    wanted = Problems()
    chosen = [_role(job, name, wanted) for name in args.role]
    counts: dict[str, int] = {}
    for text in args.instances:
        name, _, number = text.rpartition("=")
        role = _role(job, name, wanted) if name else None
        if not re.fullmatch("0*[1-9][0-9]{0,5}", number):
            wanted.error("PR801", f"--instances {text}: N must be a number from 1 to 999999")
            continue
        for r in [role] if name and role else () if name else job.roles:
            counts[r.name] = int(number)
    wanted.raise_errors()
    roles = [r for r in job.roles if not args.role or r in chosen]
    # A plugin that needs a secret cannot run without it, so a tag in its parameters is an error.
    job = attrs.evolve(job, secrets_unknown=False)
    return attrs.evolve(job, roles=tuple(_sized(r, counts.get(r.name, r.instances)) for r in roles))


def _sized(role: Role, instances: int) -> Role:
    """A role with another number of instances; what meant all of them still does."""
    return attrs.evolve(
        role,
        instances=instances,
        min_failed=min(role.min_failed, instances),
        min_succeeded=instances
        if role.min_succeeded == role.instances
        else min(role.min_succeeded, instances),
    )


def _role(job: Job, name: str, problems: Problems) -> Role | None:
    role = job.role(name)
    if role is None:
        known = [r.name for r in job.roles]
        problems.error("PR509", f"there is no role '{name}'", hint=did_you_mean(name, known))
    return role


def _grace(text: str) -> float:
    seconds = parse_duration(text)
    if seconds is None:
        hint = f"did you mean '{text}s'?" if text.isdigit() else None
        raise PairunError(Problem("PR801", f"--grace {text} is not a duration", hint=hint))
    return seconds


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "user"


def _report(job: Job, outcome: RunOutcome) -> RunReport:
    return RunReport(
        namespaces=outcome.isolation.namespaces,
        because=outcome.isolation.because,
        images=[uri.value for r in job.roles if (uri := r.image.node.get("uri"))],
        instances=[
            InstanceReport(
                label=i.label,
                init=_phase(i.ended.get("init")),
                command=_phase(i.ended.get("runtime")),
                stopped=i.stopped,
                journal=os.path.join(i.volume, "logs", i.pod_uid, "journal.jsonl"),
            )
            for i in outcome.instances
        ],
        succeeded=outcome.exit_code == 0,
        exit_code=outcome.exit_code,
        verdict=_verdict(outcome),
        workdir=outcome.workdir,
    )


def _verdict(outcome: RunOutcome) -> str:
    """Why the run ended so; a stop that came before the commands says so."""
    if outcome.decision is not None:
        return outcome.decision.because
    stopped = f"stopped by {outcome.stopped_by.name}" if outcome.stopped_by else "stopped"
    total = len(outcome.instances)
    without = sum("runtime" not in i.ended for i in outcome.instances)
    if without == total:
        return f"{stopped} during init: no command was started"
    return f"{stopped}; {total - without} of {total} commands were started" if without else stopped


def _phase(ended: PhaseRun | None) -> PhaseReport | None:
    return None if ended is None else PhaseReport(code=ended.code, seconds=ended.seconds)

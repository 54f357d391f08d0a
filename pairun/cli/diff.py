"""``pairun diff``: what other content roots, or another pairun's, change for a job."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping

import attrs

from pairun.errors import PairunError, Problem
from pairun.report.diff_text import DiffText, document
from pairun.report.problems import print_problems, problem_data
from pairun.review.diff.compare import ProblemDiff, RoleDiff, diff_problems, diff_role
from pairun.review.diff.sides import BUILT_IN, JobSide, loaded, side_of, stacked
from pairun.secrets.vault import Vault

SCHEMA = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    side = f"content root, or several with ':' between; the word {BUILT_IN} is this version's own"
    parser.add_argument("old", metavar="OLD_ROOT", help=f"the {side}")
    parser.add_argument("new", metavar="NEW_ROOT", help="the same, as it would be")
    parser.add_argument("jobs", nargs="+", metavar="JOB", help="job files; - is standard input")
    parser.add_argument("--role", action="append", default=[], help="only this role")
    parser.add_argument("--user", default="user", help="who submits the job")
    parser.add_argument("--json", action="store_true", help="JSON on standard output")
    parser.add_argument("--exit-code", action="store_true",
                        help="exit with 2 when something differs")  # fmt: skip


@attrs.frozen(kw_only=True)
class JobDiff:
    """What differs for one job file.

    Attributes:
        path: the file.
        name: the job's name, None when it is not valid.
        roles: name to what differs.
        problems: those of either side.
        vault: masks the job's secrets.
    """

    path: str
    name: str | None
    roles: Mapping[str, RoleDiff]
    problems: ProblemDiff
    vault: Vault

    @property
    def any(self) -> bool:
        """Whether anything differs."""
        return bool(
            any(r.any and r.missing != "both" for r in self.roles.values())
            or self.problems.old
            or self.problems.new
        )

    @property
    def fails(self) -> bool:
        """Whether the job is not valid with the new roots."""
        return any(p.severity == "error" for p in (*self.problems.new, *self.problems.both))


def run(args: argparse.Namespace) -> int:
    """Compare; 0 done, 1 errors with the new roots, 2 with ``--exit-code`` when jobs differ."""
    try:
        return _diff(args)
    except PairunError as e:
        if not args.json:
            raise
        problems = [problem_data(p) for p in e.problems]
        print(json.dumps({"schema": SCHEMA, "jobs": {}, "problems": problems}, indent=2))
        return 2 if all(p.id == "PR801" for p in e.problems) else 1


def _diff(args: argparse.Namespace) -> int:
    if args.jobs.count("-") > 1:
        raise PairunError(Problem("PR801", "standard input can be one job only"))
    contents = [stacked(args.old), stacked(args.new)]
    texts = {path: loaded(path) for path in args.jobs}
    # One side after the other: modules of both may have the same name, and Python keeps one.
    sides = [side_of(content, texts, args.user, args.role) for content in contents]
    diffs = [_compared(path, sides[0][path], sides[1][path]) for path in texts]
    roots = {
        name: [(r.layer, r.path, r.digest()) for r in content.roots]
        for name, content in zip(("old", "new"), contents, strict=True)
    }
    if args.json:
        jobs = {d.path: document(d.roles, d.problems, d.vault) for d in diffs}
        sides_data = {
            side: [{"layer": la, "path": path, "digest": di} for la, path, di in each]
            for side, each in roots.items()
        }
        whole = {"schema": SCHEMA, "roots": sides_data, "differs": any(d.any for d in diffs)}
        print(json.dumps({**whole, "jobs": jobs, "problems": []}, indent=2, ensure_ascii=False))
    else:
        _print_text(diffs, roots)
    if any(d.fails for d in diffs):
        return 1
    return 2 if args.exit_code and any(d.any for d in diffs) else 0


def _print_text(diffs: list[JobDiff], roots: Mapping[str, list[tuple[str, str, str]]]) -> None:
    text = DiffText(sys.stdout)
    for side, each in roots.items():
        text.roots(side, each)
    for diff in diffs:
        text.job(diff.path, diff.name, diff.roles, diff.problems, diff.vault)
    sys.stdout.flush()
    for diff in diffs:
        print_problems(diff.problems.both, vault=diff.vault)


def _compared(path: str, old: JobSide, new: JobSide) -> JobDiff:
    return JobDiff(
        path=path,
        name=new.name or old.name,
        roles={n: diff_role(old.roles.get(n), new.roles.get(n)) for n in new.roles},
        problems=diff_problems(list(old.problems), list(new.problems)),
        vault=Vault([*old.vault.secrets, *new.vault.secrets]),
    )

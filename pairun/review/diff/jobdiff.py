"""What other content roots change for jobs: plans each job with both sides, then compares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from pairun.errors import PairunError, Problem, Problems
from pairun.playbook.content import Content
from pairun.playbook.document.reading import Node
from pairun.review.diff.compare import ProblemDiff, RoleDiff, diff_problems, diff_role
from pairun.review.diff.diagnosisdiff import DiagnosisDiff, diff_diagnosis
from pairun.review.diff.sides import JobSide, loaded, side_of, stacked
from pairun.review.diff.values import DEFAULT, Path, Value, ValueChange, changes
from pairun.secrets.vault import Vault


@attrs.frozen(kw_only=True)
class JobDiff:
    """The differences of one job file.

    Attributes:
        path: the file.
        name: the job's name; None if it is not valid.
        roles: role name to its differences.
        problems: the problems of both sides.
    """

    path: str
    name: str | None
    roles: Mapping[str, RoleDiff]
    problems: ProblemDiff

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
        """Whether the job is invalid with the new roots."""
        return any(p.severity == "error" for p in (*self.problems.new, *self.problems.both))


@attrs.frozen(kw_only=True)
class Comparison:
    """Jobs compared under two stacks of content roots.

    Attributes:
        old: the roots of the old side.
        new: the roots of the new side.
        jobs: the differences of each job.
        diagnosis: the differences in the diagnosis, which all jobs share.
        policy: the differences in the policy, which all jobs share.
    """

    old: Content
    new: Content
    jobs: Sequence[JobDiff]
    diagnosis: DiagnosisDiff
    policy: Sequence[ValueChange]
    vault: Vault

    @property
    def any(self) -> bool:
        """Whether anything differs."""
        return self.diagnosis.any or bool(self.policy) or any(d.any for d in self.jobs)

    @property
    def fails(self) -> bool:
        """Whether a job is invalid with the new roots."""
        return any(d.fails for d in self.jobs)


def compare(
    old: str, new: str, jobs: Sequence[str], user: str, only: list[str], vault: Vault
) -> Comparison:
    """Compare jobs under two stacks of roots.

    Args:
        old: the old side, in the form that `stacked` reads.
        new: the new side.
        jobs: files; ``-`` is standard input.
        user: the user who submits the jobs.
        only: the roles to compare; all if empty.
        vault: collects every secret that is read.

    Raises:
        PairunError: the roots of a side cannot be used.
    """
    if list(jobs).count("-") > 1:
        raise PairunError(Problem("PR801", "standard input can be one job only"))
    contents = [stacked(old), stacked(new)]
    texts = {path: loaded(path) for path in jobs}
    # One side after the other: both may have modules with the same name, and Python keeps one.
    sides = [side_of(content, texts, user, only, vault) for content in contents]
    diffs = [_job_diff(path, sides[0][path], sides[1][path]) for path in texts]
    return Comparison(
        old=contents[0],
        new=contents[1],
        jobs=diffs,
        diagnosis=diff_diagnosis(*contents),
        policy=diff_policy(*contents),
        vault=vault,
    )


def _job_diff(path: str, old: JobSide, new: JobSide) -> JobDiff:
    return JobDiff(
        path=path,
        name=new.name or old.name,
        roles={n: diff_role(old.roles.get(n), new.roles.get(n)) for n in new.roles},
        problems=diff_problems(list(old.problems), list(new.problems)),
    )


_DEFAULTS = ("pod", "defaults")
"""pairun stacks these, and every job shows the ones that it gets."""
_ABSENT: Mapping[Path, Any] = {
    ("plugin_folders", "roots"): "*",
    ("plugin_folders", "paths"): ["plugins"],
    ("job_yaml",): "js-yaml 3",
}
"""The values of a policy that does not have them."""


def diff_policy(old: Content, new: Content) -> Sequence[ValueChange]:
    """The values that differ between the policies in force."""
    return tuple(changes(_values(old), _values(new)))


def _values(content: Content) -> dict[Path, Value]:
    # Both sides are valid here, so no document has problems.
    documents = list(content.playbooks("policy", Problems()))
    values: dict[Path, Value] = {}

    def put(path: Path, node: Node) -> None:
        if path == _DEFAULTS:
            return
        if isinstance(node.value, dict):
            for key, inner in node.items():
                put((*path, key), inner)
        elif node.value != [] or path[0] != "job_may":  # an empty list allows as much as none
            value = node.plain()
            is_default = path in _ABSENT and value == _ABSENT[path]
            setter = DEFAULT if is_default else f"{node.place.source.layer} {node.place}"
            values[path] = Value(value=value, setter=setter)

    if documents:
        put((), documents[-1])
    return values

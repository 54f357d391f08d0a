"""Layers are stacked, and their mistakes are reported at their place."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.desk import Desk


def test_a_playbook_is_of_the_phase_that_its_file_names(desk: Desk) -> None:
    """Also one that only patches."""
    root = desk.root({"playbooks/init.yaml": "phase: runtime\npatches: []\n"})
    (problem,) = desk.problems(desk.job_text, root)
    assert (problem.id, desk.at(problem.place)[:7]) == ("PR204", "runtime")


def test_tasks_beside_patches(desk: Desk) -> None:
    """A playbook replaces the one below, or changes it."""
    root = desk.root({"playbooks/init.yaml": "phase: init\ntasks: []\npatches: []\n"})
    (problem,) = desk.problems(desk.job_text, root)
    assert (problem.id, desk.at(problem.place)[:7]) == ("PR207", "patches")
    assert [desk.at(p)[:5] for _, p in problem.also] == ["tasks"]


def test_messages_name_what_a_person_wrote(desk: Desk) -> None:
    """The job's layer by its name, and of a choice only what can be chosen."""
    (problem,) = desk.problems(desk.job_text + "extras: {pairun: [a]}\n")
    assert problem.message == "'extras.pairun' must be a mapping, not a list"
    text = textwrap.dedent("""\
        runtime:
          - patch: mount_storage
            failure_policy: ignor
    """)
    root = desk.root({"playbooks/policy.yaml": desk.all_open}, "policy")
    (problem,) = desk.problems(desk.job(text), root)
    assert problem.message == "'failure_policy' must be one of fail, ignore, not 'ignor'"
    assert problem.hint == "did you mean 'ignore'?"

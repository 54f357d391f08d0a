"""A desk to review jobs at: content roots and job files in a directory of the test's own."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

from pairun.errors import PairunError, Place, Problem, Source, render
from pairun.job.jobfile import read_job
from pairun.job.jsyaml import dialect_named
from pairun.module import Phase
from pairun.plan import Task
from pairun.playbook.content import Content, Root, built_in_root
from pairun.playbook.document.reading import Node, read_text
from pairun.playbook.drafts import TaskDraft
from pairun.playbook.effective import Layers
from pairun.review.jobreview import JobReview, review_loaded
from pairun.secrets.vault import Vault

JOB = """\
protocolVersion: 2
name: mnist
type: job
prerequisites:
  - {name: image, type: dockerimage, uri: "ubuntu:22.04"}
taskRoles:
  worker:
    instances: 2
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 1024, gpu: 0}
    commands: [train]
"""
COMMAND = """\
  - id: user_command
    name: The user's command
    user_command: {script: "{{ job.user_command }}"}
    locked: true
"""
ALL_OPEN = """\
job_may:
  patch: {"*": ["*", on_exit, environment, exit_codes, locked, vars]}
  disable: "*"
  insert: {init: "*", runtime: "*"}
  vars: "*"
  plugins: {allow: "*"}
"""


class Desk:
    """Writes content roots, reads jobs, and answers what became of them."""

    job_text = JOB
    command = COMMAND
    all_open = ALL_OPEN

    def __init__(self, tmp: Path) -> None:
        self.tmp = tmp
        self._layers: dict[tuple[Path, ...], Layers] = {}

    def root(self, files: Mapping[str, str], name: str = "cluster") -> Path:
        """A content root with these files."""
        root = self.tmp / name
        for path, text in files.items():
            place = root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        return root

    def content(self, *roots: Path) -> Content:
        """The stack of the built-in root and these."""
        return Content([built_in_root(), *(Root(path=str(r), layer="cluster") for r in roots)])

    def layers(self, *roots: Path) -> Layers:
        """The same, read and checked."""
        if roots not in self._layers:
            self._layers[roots] = Layers(self.content(*roots))
        return self._layers[roots]

    def job(self, pairun: str = "", *, plugins: str = "", more: str = "") -> str:
        """A job's text.

        Args:
            pairun: its ``extras.pairun``.
            plugins: its list of plugins.
            more: further top-level keys.
        """
        extras = ""
        if pairun:
            extras += (
                "  pairun:\n" + textwrap.indent(textwrap.dedent(pairun), "    ").rstrip() + "\n"
            )
        if plugins:
            listed = textwrap.indent(textwrap.dedent(plugins), "    ")
            extras += "  com.microsoft.pai.runtimeplugin:\n" + listed
        text = JOB + more + (f"extras:\n{extras}" if extras else "")
        return text if text.endswith("\n") else text + "\n"

    def review(self, text: str, *roots: Path) -> JobReview:
        """A job against these roots; problems with the job are in the review."""
        layers = self.layers(*roots)
        dialect = dialect_named(layers.policy.job_yaml)
        job, problems = read_job(
            read_text(Source("job.yaml", "job", text), dialect), dialect=dialect
        )
        return review_loaded("job.yaml", job, problems, layers, [], vault=Vault())

    def valid(self, text: str, *roots: Path) -> JobReview:
        """The same, of a job that must be valid."""
        review = self.review(text, *roots)
        assert not review.problems.errors, "\n".join(map(render, review.problems))
        return review

    def problems(self, text: str, *roots: Path) -> list[Problem]:
        """Every error of a job and of its roots."""
        try:
            return self.review(text, *roots).problems.errors
        except PairunError as e:
            return list(e.problems)

    def playbook_problems(self, tasks: str, head: str = "phase: runtime\n") -> list[Problem]:
        """The errors of a runtime playbook with these tasks before the user's command."""
        text = f"{head}tasks:\n{textwrap.indent(textwrap.dedent(tasks), '  ')}{COMMAND}"
        return self.problems(JOB, self.root({"playbooks/runtime.yaml": text}))

    def order(self, review: JobReview, phase: Phase) -> list[str]:
        """The ids of a phase's tasks."""
        return [t.id for t in review.plans[0].plans[phase].tasks()]

    def task(self, review: JobReview, id_: str) -> Task:
        """A planned task."""
        plans = review.plans[0].plans.values()
        return next(t for p in plans for t in p.tasks() if t.id == id_)

    def draft(self, review: JobReview, id_: str) -> TaskDraft:
        """A task with the history of its values."""
        drafts = review.plans[0].effective.drafts.values()
        return next(t for d in drafts for t in d.tasks() if t.id == id_)

    def at(self, place: Place | None) -> str:
        """The text that a caret points at."""
        assert place is not None
        lines = place.source.text.split("\n")
        return lines[place.line - 1][place.column - 1 :]

    def node(self, text: str, layer: str = "file") -> Node:
        """A YAML text as a tree."""
        return read_text(Source("text.yaml", layer, textwrap.dedent(text)))

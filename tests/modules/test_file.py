"""The module file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pairun.module import Secret

if TYPE_CHECKING:
    from tests.modules.conftest import Harness

TABLE: list[dict[str, Any]] = [
    {
        "what": "a new file, with its directories",
        "args": {"path": "{tmp}/pai/d/e/f", "content": "hello"},
        "verdict": "will_change",
        "before": "nothing",
        "after": "5 bytes",
        "leaves": {"{tmp}/pai/d/e/f": "hello"},
        "review": "will_change",
    },
    {
        "what": "an empty file",
        "args": {"path": "{tmp}/f", "content": ""},
        "verdict": "will_change",
        "leaves": {"{tmp}/f": ""},
        "review": "unknown",
    },
    {
        "what": "the first line that differs is shown",
        "args": {"path": "{tmp}/f", "content": "a\nB\nc\n"},
        "files": {"{tmp}/f": "a\nb\nc\n"},
        "verdict": "will_change",
        "before": "line 2: 'b\\n'",
        "after": "line 2: 'B\\n'",
        "leaves": {"{tmp}/f": "a\nB\nc\n"},
    },
    {
        "what": "a line that ends too early",
        "args": {"path": "{tmp}/f", "content": "a\n"},
        "files": {"{tmp}/f": "a\nb\n"},
        "before": "line 2: 'b\\n'",
        "after": "no line 2",
    },
    {
        "what": "secret content shows as sizes",
        "args": {"path": "{tmp}/f", "content": Secret("hunter2"), "mode": "0600"},
        "files": {"{tmp}/f": "hunter1234"},
        "before": "10 bytes",
        "after": "7 bytes",
        "leaves": {"{tmp}/f": "hunter2"},
    },
    {
        "what": "absent, and it is",
        "args": {"path": "{tmp}/f", "absent": True},
        "verdict": "no_change",
    },
    {
        "what": "absent removes a file",
        "args": {"path": "{tmp}/f", "absent": True},
        "files": {"{tmp}/f": "x"},
        "verdict": "will_change",
        "leaves": {"{tmp}/f": None},
    },
    {
        "what": "absent removes a tree",
        "args": {"path": "{tmp}/d", "absent": True},
        "files": {"{tmp}/d/e/f": "x", "{tmp}/d/g": "y"},
        "verdict": "will_change",
        "before": "directory",
        "leaves": {"{tmp}/d": None},
    },
    {
        "what": "a directory is not replaced",
        "args": {"path": "{tmp}/d", "content": "x"},
        "files": {"{tmp}/d": None},
        "failure": "permanent",
        "fault": "user",
        "says": "is a directory",
    },
    {
        "what": "a file where a directory is needed",
        "args": {"path": "{tmp}/f/g", "content": "x"},
        "files": {"{tmp}/f": "x"},
        "failure": "permanent",
        "says": "{tmp}/f",
    },
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row["what"]))
def test_table(harness: Harness, row: dict[str, Any]) -> None:
    """Each row of the table holds, and its second run changes nothing."""
    harness.table("file", row)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"path": "/x"}, "give 'content', or 'absent: true'"),
        ({"path": "/x", "content": "a", "absent": True}, "give 'content', or 'absent: true'"),
        ({"path": "x", "content": "a"}, "'path' must be absolute"),
        ({"path": "/x/..", "absent": True}, "must not be the root"),
        ({"path": "/x", "content": "a", "mode": 644}, "must be file mode, not 644"),
    ],
)
def test_what_cannot_work_is_refused(harness: Harness, args: dict[str, Any], says: str) -> None:
    """A combination of arguments that makes no sense is a problem in words."""
    assert any(says in problem.message for problem in harness.problems("file", args))


def test_only_the_mode_differs(harness: Harness) -> None:
    """A wrong mode alone is a change, from one mode to the other."""
    path = harness.tmp / "f"
    path.write_text("x")
    path.chmod(0o600)
    outcome = harness.run("file", {"path": str(path), "content": "x", "mode": "0640"})
    assert outcome.verdict is not None
    assert (outcome.verdict.before, outcome.verdict.after) == ("0600", "0640")
    assert path.stat().st_mode & 0o7777 == 0o640


def test_a_link_is_replaced_and_not_followed(harness: Harness) -> None:
    """What a symbolic link points to stays as it was."""
    target, link = harness.tmp / "target", harness.tmp / "link"
    target.write_text("mine")
    link.symlink_to(target)
    outcome = harness.run("file", {"path": str(link), "content": "new"})
    assert outcome.verdict is not None
    assert outcome.verdict.before == "symbolic link"
    assert target.read_text() == "mine"
    assert not link.is_symlink()
    assert link.read_text() == "new"


def test_a_named_pipe_does_not_hang(harness: Harness) -> None:
    """A special file at the path is replaced without being opened."""
    path = harness.tmp / "pipe"
    os.mkfifo(path)
    assert harness.run("file", {"path": str(path), "content": "new"}).failure is None
    assert path.read_text() == "new"


# --- with templates --------------------------------------------------------------------------------


_INIT = """\
phase: init
vars:
  slots: "{{ job.role.instances }}"
  master: "{{ cluster.roles[0].instances[0].host_ip }}"
patches:
  - after: job_environment
    id: hostfile
    name: The peers, for MPI
    file:
      path: /usr/local/pai/run/hostfile
      content: |
        # {{ job.name }}, from {{ master }}
        {% for role in cluster.roles -%}
        {% for peer in role.instances -%}
        {{ peer.host_ip }} slots={{ slots }} # {{ role.name }}-{{ loop.index0 }}
        {% endfor -%}
        {% endfor -%}
        end
  - after: hostfile
    id: one_line
    name: The same in one expression
    vars: {peers: "{{ cluster.roles | map(attribute='name') | list }}"}
    file: {path: /usr/local/pai/run/line, content: "{% for p in peers %}<{{ p }}>{% endfor %}"}
"""

_RUNTIME = """\
phase: runtime
patches:
  - before: user_command
    id: peers
    name: The peers, once more
    file:
      path: /usr/local/pai/run/peers
      content: |
        {%- for role in cluster.roles if role.name != job.role.name %}
        {{ role.name }} {{ role.instances | length }}
        {%- endfor %}
"""


def test_a_hostfile_of_an_operator(tmp_path: Path) -> None:
    """Statements in an operator's patches write files of what is known late, in both phases."""
    playbooks = tmp_path / "root" / "playbooks"
    playbooks.mkdir(parents=True)
    (playbooks / "init.yaml").write_text(_INIT)
    (playbooks / "runtime.yaml").write_text(_RUNTIME)
    roles = {
        name: {
            "instances": count,
            "dockerImage": "i",
            "resourcePerInstance": {"cpu": 1, "memoryMB": 1, "gpu": 0},
            "commands": ["true"],
            "completion": {"minSucceededInstances": -1},
        }
        for name, count in (("ps", 1), ("worker", 2))
    }
    image = {"type": "dockerimage", "name": "i", "uri": "example.com/a/b:1"}
    job = {
        "protocolVersion": 2, "name": "test", "type": "job", "prerequisites": [image],
        "taskRoles": roles,
    }  # fmt: skip
    (tmp_path / "job.yaml").write_text(json.dumps(job))
    done = subprocess.run(
        [sys.executable, "-m", "pairun", "run", "job.yaml", "--no-namespace", "--root", "root"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    run = tmp_path / "pairun-run/test/worker-1/pai/run"
    assert (run / "hostfile").read_text() == (
        "# test, from 127.0.0.1\n127.0.0.1 slots=2 # ps-0\n127.0.0.1 slots=2 # worker-0\n"
        "127.0.0.1 slots=2 # worker-1\nend\n"
    )
    assert (run / "line").read_text() == "<ps><worker>"
    assert (run / "peers").read_text() == "\nps 1\n"

"""`pairun lint` warns of a variable that nothing sets, before the command ends with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pairun.errors import Problem
from pairun.review.jobreview import NO_SETTINGS, JobReview, review_pod
from pairun.review.shellsyntax import ShellSyntax, scripts_of_plan
from pairun.secrets.vault import Vault

if TYPE_CHECKING:
    from tests.desk import Desk

UNSET = [
    "PATH=/x CKPT=/a:$CKPT run",
    "train --lr $lr",
    'cd "$WORKSPACE"',
]
SET = [
    "export CKPT=${CKPT:-}:/code",
    "export CKPT=/a\nexport CKPT=$CKPT:/b",
    "set +u\necho $CKPT",
    "set +o nounset; echo $CKPT",
    ". /env\necho $CKPT",
    "echo '$CKPT'",
    "# uses $CKPT",
    r"echo \$CKPT",
    "echo $PATH $HOME $HOSTNAME $PWD $SECONDS $BASH_VERSION $UID",
    "echo $PAI_HOST_IP_worker_0 $PAI_PORT_LIST_worker_0_http $FC_TASK_INDEX $PAIRUN_ENGINE",
    "echo $KUBERNETES_SERVICE_HOST $REDIS_SERVICE_PORT $REDIS_PORT_6379_TCP_ADDR",
    "echo $CUDA_VERSION $NVIDIA_VISIBLE_DEVICES $LANG $JAVA_HOME $https_proxy",
    "echo <% $secrets.key %>",
]


def _unset(desk: Desk, command: str, *, pairun: str = "", plugins: str = "") -> list[str]:
    text = desk.job(pairun, plugins=plugins).replace("[train]", json.dumps([command]))
    return [p.message for p in _warnings(desk.valid(text))]


def _warnings(review: JobReview, *, other_settings: bool = False) -> list[Problem]:
    syntax = ShellSyntax()
    scripts = (scripts_of_plan(p, other_settings=other_settings) for p in review.plans)
    return [p for each in scripts for p in syntax.check(each) if p.id == "PR903"]


@pytest.mark.parametrize("command", UNSET)
def test_a_variable_that_is_unset(desk: Desk, command: str) -> None:
    """The command would end with 'unbound variable'."""
    (message,) = _unset(desk, command)
    assert "'unbound variable'" in message


@pytest.mark.parametrize("command", SET)
def test_a_variable_that_something_sets(desk: Desk, command: str) -> None:
    """The command, the platform, the shell or the image."""
    assert _unset(desk, command) == []


def test_the_place_is_the_variables_own(desk: Desk) -> None:
    """In the second command, third line, with its column."""
    commands = "\n      - a=1\n      - |\n        x\n        y\n        z $a $b\n"
    review = desk.valid(desk.job().replace(" [train]\n", commands))
    (problem,) = _warnings(review)
    assert (problem.id, problem.hint) == ("PR903", "write ${b:-}")
    assert problem.place is not None
    line = problem.place.source.line(problem.place.line)
    assert line[problem.place.column - 1 :] == "$b"


def test_a_parameter_of_several_lines_costs_the_line_alone(desk: Desk) -> None:
    """The place is then the command's."""
    text = desk.job(more='parameters: {p: "a\\nb"}\n').replace(
        "[train]", "['<% $parameters.p %> $c']"
    )
    (problem,) = _warnings(desk.valid(text))
    assert problem.place is not None
    assert problem.place.source.line(problem.place.line).strip().startswith("commands:")


def test_without_nounset_nothing_ends(desk: Desk) -> None:
    """A cluster may switch it off."""
    patch = "phase: runtime\npatches: [{patch: user_command, args: {nounset: false}}]\n"
    root = desk.root({"playbooks/runtime.yaml": patch})
    text = desk.job().replace("[train]", "[echo $x]")
    assert _warnings(desk.valid(text, root)) == []


def test_what_a_patch_of_the_command_sets(desk: Desk) -> None:
    """The environment of the task, if the policy lets a job set it."""
    root = desk.root({"playbooks/policy.yaml": desk.all_open})
    patch = "    runtime:\n    - {patch: user_command, environment: {CKPT: /x}}\n"
    text = desk.job(patch).replace("[train]", "[echo $CKPT $OTHER]")
    messages = [p.message for p in _warnings(desk.review(text, root))]
    assert [m.split(";")[0] for m in messages] == ["the job does not set $OTHER"]


def test_what_a_callback_exports_is_set(desk: Desk) -> None:
    """ContainerStart hands its variables on; what it sources nobody knows."""
    plugin = "- {{plugin: cmd, parameters: {{callbacks: [{{event: {0}, commands: ['{1}']}}]}}}}\n"
    exported = plugin.format("containerStart", "export DATA=/d")
    assert _unset(desk, "echo $DATA", plugins=exported) == []
    assert len(_unset(desk, "echo $OTHER", plugins=exported)) == 1
    assert _unset(desk, "echo $OTHER", plugins=plugin.format("containerStart", ". /env")) == []
    isolated = plugin.format("taskStarts", "export DATA=/d")
    assert len(_unset(desk, "echo $DATA", plugins=isolated)) == 1


def test_a_plain_pod_has_settings_of_its_own(tmp_path: Path, desk: Desk) -> None:
    """Its init plugins may set variables, so only names in lower case are certain."""
    path = tmp_path / "runtime.yaml"
    path.write_text("commands: ['echo $UPPER $lower']\n")
    review = review_pod(str(path), desk.layers(), "user", NO_SETTINGS, vault=Vault())
    found = _warnings(review, other_settings=True)
    assert [p.message.split(",")[0] for p in found] == ["nothing sets $lower"]

"""Misnamed files and folders of a content root are reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pairun.errors import PairunError, Problem
from pairun.playbook.content import open_content
from pairun.playbook.rootfiles import not_a_root

if TYPE_CHECKING:
    from pathlib import Path

    from tests.desk import Desk


def warnings(desk: Desk, text: str, *roots: Path) -> list[Problem]:
    """The warnings of a job that must be valid."""
    return [p for p in desk.valid(text, *roots).problems if p.severity == "warning"]


def test_a_config_folder_that_is_none(desk: Desk) -> None:
    """A slip in PAI_CONFIG_DIR is said; an empty value is as good as none."""
    with pytest.raises(PairunError) as e:
        open_content([], {"PAI_CONFIG_DIR": str(desk.tmp / "absent")})
    assert e.value.problems[0].id == "PR601"
    assert "PAI_CONFIG_DIR" in e.value.problems[0].message
    assert len(open_content([], {"PAI_CONFIG_DIR": ""}).roots) == 1
    # the ConfigMap with OpenPAI's exit specification
    (desk.tmp / "k8s-job-exit-spec.yaml").write_text("spec: []\n")
    assert len(open_content([], {"PAI_CONFIG_DIR": str(desk.tmp)}).roots) == 1


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("playbooks/int.yaml", "did you mean 'init.yaml'?"),
        ("playbooks/init.yml", "did you mean 'init.yaml'?"),
        ("playbooks/more.yaml", "known: init.yaml, runtime.yaml, policy.yaml"),
        ("plugins/ssh.yaml", "did you mean 'plugin_specs'?"),
        ("plugin_specs/ssh.yml", "in plugin_specs names end with .yaml"),
        ("modules/ssh.yaml", "in modules names end with .py"),
        ("modules/waiting/pods.py", "the folder of a module has a file __init__.py"),
        ("policy.yaml", "it belongs in the folder playbooks"),
    ],
)
def test_a_file_that_nobody_reads(desk: Desk, path: str, hint: str) -> None:
    """What was meant for pairun and has another name is a warning of every review."""
    root = desk.root({path: "", "modules/_helper.py": "", "README.md": "", "modules/ok.py": ""})
    (problem,) = warnings(desk, desk.job_text, root)
    assert (problem.id, problem.hint) == ("PR912", hint)
    assert str(root) in problem.message


def test_a_folder_of_files_has_other_programs_files(desk: Desk) -> None:
    """In a mounted ConfigMap only what is nearly a playbook's name is a slip."""
    (desk.tmp / "exit-spec.yaml").write_text("")
    (desk.tmp / "polcy.yaml").write_text("")
    content = open_content([], {"PAI_CONFIG_DIR": str(desk.tmp)})
    from pairun.playbook.effective import Layers

    assert [p.hint for p in Layers(content).warnings] == ["did you mean 'policy.yaml'?"]


def test_a_folder_that_is_part_of_a_root(desk: Desk) -> None:
    """The hint names the content root, or what to do with a ConfigMap's folder."""
    root = desk.root({"playbooks/init.yaml": ""})
    for path in (root / "playbooks", f"{root}/playbooks/"):
        problem = not_a_root(str(path))
        assert problem is not None
        assert problem.hint == f"it is a folder of a content root: give {root}"
    flat = desk.root({"init.yaml": "", "policy.yaml": "", "exit-spec.yaml": ""}, "flat")
    problem = not_a_root(str(flat))
    assert problem is not None
    assert problem.hint == (
        "it has init.yaml, policy.yaml itself: move them to a folder 'playbooks' in it, "
        f"or set PAI_CONFIG_DIR={flat} in place of --root"
    )
    problem = not_a_root(str(desk.tmp / "none"))
    assert problem is not None
    assert "it has none of the folders" in str(problem.hint)

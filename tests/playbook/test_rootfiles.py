"""The files of a content root, and folders that are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pairun.errors import PairunError
from pairun.playbook.content import open_content
from pairun.playbook.rootfiles import not_a_root

if TYPE_CHECKING:
    from tests.desk import Desk


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


def test_files_that_pairun_ignores(desk: Desk) -> None:
    """In the root's folders; helpers, hidden files and other folders do not count."""
    ignored = [
        "modules/ssh.yaml", "modules/waiting", "playbooks/init.yml", "playbooks/int.yaml",
        "plugin_specs/ssh.yml", "plugins/ssh.yaml",
    ]  # fmt: skip
    read = ["modules/_helper.py", "modules/ok.py", "playbooks/policy.yaml", "docs/a.yaml", "README"]
    files = [*ignored, *read]
    root = desk.root({f"{p}/pods.py" if p.endswith("waiting") else p: "" for p in files})
    assert open_content([str(root)], {}).roots[1].ignored() == ignored


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

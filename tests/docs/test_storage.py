"""The examples on the page about storage work as printed."""

from __future__ import annotations

import pathlib
import re

import pytest

from pairun.cli.main import main
from tests.desk import JOB

PAGE = pathlib.Path(__file__).parents[2] / "docs/storage.md"
BLOCKS = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
PLAYBOOKS = [block for block in BLOCKS if block.startswith("phase:")]
JOBS = [block for block in BLOCKS if "extras:" in block]
POLICY = "job_may:\n  insert: {runtime: [mount_storage]}\n  plugins: {allow: '*'}\n"


def _root(tmp_path: pathlib.Path, name: str, text: str) -> str:
    (tmp_path / "root/playbooks").mkdir(parents=True)
    (tmp_path / "root/playbooks" / name).write_text(text)
    return str(tmp_path / "root")


def _job(tmp_path: pathlib.Path, more: str = "") -> str:
    job = tmp_path / "job.yaml"
    job.write_text(JOB + more)
    return str(job)


def test_every_example_is_checked() -> None:
    """The page has no other form of example."""
    assert (len(PLAYBOOKS), len(JOBS)) == (1, 3)
    assert sorted(BLOCKS) == sorted([*PLAYBOOKS, *JOBS])


@pytest.mark.parametrize("text", PLAYBOOKS)
def test_a_playbook_of_the_page(
    text: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lint and a review of a job accept it."""
    phase = text.split()[1]
    root = _root(tmp_path, f"{phase}.yaml", text)
    for command in (["lint", root], ["--dry-run", _job(tmp_path), "--root", root]):
        assert main(command) == 0, capsys.readouterr()
        assert capsys.readouterr().err == ""


@pytest.mark.parametrize("more", JOBS)
def test_a_job_of_the_page(
    more: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A review accepts it under the policy that the page names, and shows no password."""
    root = _root(tmp_path, "policy.yaml", POLICY)
    assert main(["--dry-run", _job(tmp_path, more), "--root", root, "--full"]) == 0
    printed = capsys.readouterr()
    assert "error" not in printed.err
    assert "mount_storage" in printed.out
    assert "correct horse" not in printed.out


def test_a_password_in_a_playbook_is_masked(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (text,) = (p for p in PLAYBOOKS if "mount_storage" in p)
    text = text.replace("path: /mnt/home}", "path: /mnt/home, password: pass-phrase}")
    root = _root(tmp_path, "runtime.yaml", text)
    assert main(["--dry-run", _job(tmp_path), "--root", root, "--json"]) == 0
    out = capsys.readouterr().out
    assert "smb.example.com" in out
    assert "pass-phrase" not in out

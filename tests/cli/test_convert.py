"""``pairun convert``, and old jobs wherever a job file goes, each as a process of its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.cli.conftest import Shell

OLD: dict[str, Any] = {
    "jobName": "old",
    "image": "ubuntu:22.04",
    "gpuType": "K80",
    "jobEnvs": {"STEPS": 3},
    "taskRoles": [
        {"name": "worker", "command": 'echo "$STEPS"\nseq "$STEPS"', "minSucceededTaskCount": 1}
    ],
}


def old(shell: Shell, **more: Any) -> Any:
    """The old job's file, with further keys."""
    return shell.file("old.json", json.dumps({**OLD, **more}, indent=2) + "\n")


def test_an_old_job_becomes_a_file_to_go_on_with(shell: Shell) -> None:
    """YAML with the command as a block, and what was lost as comments above."""
    said = shell.process("convert", old(shell))
    assert said.code == 0
    assert said.ids == ["PR732"]
    head = said.out.split("protocolVersion")[0].splitlines()
    assert all(line.startswith("#") for line in head)
    assert "old.json" in head[0]
    assert "PR732 line 4: gpuType" in head[1]
    assert '      - |-\n        echo "$STEPS"\n        seq "$STEPS"\n' in said.out
    new = shell.file("new.yaml", said.out)
    again = shell.process("lint", new)
    assert (again.code, again.out, again.err) == (0, "1 file: no problems\n", "")


def test_the_new_file_is_reviewed_as_the_old_one(shell: Shell) -> None:
    """Both reviews show the same roles, tasks and commands."""
    before = shell.process("--dry-run", "--json", old(shell))
    new = shell.file("new.yaml", shell.process("convert", shell.tmp / "old.json").out)
    after = shell.process("--dry-run", "--json", new)
    assert (before.code, after.code) == (0, 0)
    assert without_places(before.data["roles"]) == without_places(after.data["roles"])
    assert before.data["roles"]["worker"]["user_command"].startswith("export STEPS='3'\n")
    assert [p["id"] for p in before.data["problems"]] == ["PR738", "PR732"]
    assert after.data["problems"] == []


def without_places(data: Any) -> Any:
    """Reviewed tasks without where their values stand."""
    if isinstance(data, dict):
        places = {"where", "file", "line", "column", "place"}
        return {k: without_places(v) for k, v in data.items() if k not in places}
    return [without_places(v) for v in data] if isinstance(data, list) else data


def test_an_old_job_runs(shell: Shell) -> None:
    """``pairun run`` takes the old file as it is, with its variables."""
    said = shell.process("run", "--no-namespace", "--workdir", "work", old(shell))
    assert said.code == 0, said.err
    assert "worker-0 | 3" in said.out
    assert "warning[PR738]" in said.err


def test_a_job_of_today_stays_as_it_is(shell: Shell) -> None:
    """It is printed byte by byte, with a note that nothing was to do."""
    text = "# a comment\n" + shell.job_text + "secrets:\n  token: abcdefgh\n"
    said = shell.process("convert", shell.file("job.yaml", text))
    assert (said.code, said.out) == (0, text)
    assert "job.yaml is a job of protocol v2 already" in said.err


def test_standard_input_and_several_files(shell: Shell) -> None:
    """``-`` reads a job; several come apart by ``---`` and their names."""
    said = shell.process("convert", "-", stdin=json.dumps(OLD))
    assert said.code == 0
    assert "Converted by pairun from -," in said.out
    said = shell.process("convert", old(shell), shell.job())
    first, second, third = said.out.split("---\n")
    assert first == ""
    assert second.startswith("# ")
    assert "old.json\n# Converted" in second
    assert third.endswith(f"job.yaml\n{shell.job_text}")


def test_everything_that_is_wrong_at_once_and_nothing_printed(shell: Shell) -> None:
    """All mistakes with their places in the old file; other files are still converted."""
    bad = shell.file("bad.json", json.dumps({"jobName": "a.b", "colour": 1, "taskRoles": []}))
    said = shell.process("convert", bad)
    assert (said.code, said.out) == (1, "")
    assert sorted(said.ids) == ["PR502", "PR503", "PR504", "PR731"]
    assert "bad.json:1:13" in said.err
    both = shell.process("convert", bad, old(shell))
    assert both.code == 1
    assert "name: old\n" in both.out
    assert "a.b" not in both.out


def test_what_is_no_job_is_said_to_be_none(shell: Shell) -> None:
    """Nothing there, nothing in it, both formats in one."""
    assert shell.process("convert", "nowhere.json").ids == ["PR108"]
    assert shell.process("convert", shell.file("a.yaml", "")).ids == ["PR501"]
    mixed = old(shell, protocolVersion=2)
    for command in ("convert", "lint", "--dry-run"):
        said = shell.process(command, mixed)
        assert (said.code, said.ids) == (1, ["PR730"])
    usage = shell.process("convert")
    assert usage.code == 2
    assert usage.err == "pairun convert: error: the following arguments are required: FILE\n"


def test_lint_shows_an_old_job_as_it_is(shell: Shell) -> None:
    """Warnings only; the exit code is that of a valid file."""
    said = shell.process("lint", old(shell, dataDir="$PAI_DEFAULT_FS_URI/data"))
    assert said.code == 0
    assert said.ids == ["PR738", "PR732", "PR733", "PR732"]

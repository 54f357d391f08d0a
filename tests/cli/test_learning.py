"""``pairun diagnose --learn``: drafts of rules, questions on a terminal, and the trial of the file."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from pairun.cli import main as cli
from tests.effort import cases


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Logs of nine jobs on one node, with a secret in each."""
    folder = tmp_path / "logs"
    for n in range(9):
        (folder / f"job-{n}").mkdir(parents=True)
        text = f"step {n}\nFATAL: reactor {n} scrammed, password=S3cretWord{n}\n"
        (folder / f"job-{n}" / "node-7.log").write_text(text)
    return folder


def _learn(logs: Path, *more: str) -> int:
    out = str(logs.parent / "rules.yaml")
    return cli.main(["diagnose", "--learn", str(logs), "--out", out, *more])


@pytest.mark.slow
def test_a_draft_is_written_filled_in_and_tried(
    logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same command drafts, then checks; the rules work in a content root; no secret is shown."""
    rules = logs.parent / "rules.yaml"
    assert _learn(logs) == 0
    out = capsys.readouterr().out
    assert "9 jobs on node-7: points at the node" in out
    assert "S3cretWord" not in out + rules.read_text()
    assert _learn(logs) == 0
    assert "no class yet" in capsys.readouterr().out
    rules.write_text(rules.read_text().replace("class: unknown", "class: gpu_lost"))
    assert _learn(logs) == 0
    assert "(gpu_lost): explains 9 logs" in capsys.readouterr().out
    root = logs.parent / "cluster"
    (root / "diagnosis").mkdir(parents=True)
    rules.rename(root / "diagnosis" / "learned.yaml")
    log = str(logs / "job-3" / "node-7.log")
    assert cli.main(["diagnose", "--root", str(root), log]) == 0
    assert "gpu_lost" in capsys.readouterr().out
    assert _learn(logs, "--root", str(root)) == 0
    assert "0 without an explanation" in capsys.readouterr().out
    assert not rules.exists()


def test_a_rule_that_is_too_wide_is_refused(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The problem has an id and a place; the file stays as the person wrote it."""
    rules = logs.parent / "rules.yaml"
    assert _learn(logs) == 0
    data = yaml.safe_load(rules.read_text())
    data["rules"][0].update({"class": "gpu_lost", "weight": 97})
    data["rules"][0]["patterns"].append("KeyError|RuntimeError")
    rules.write_text(text := yaml.safe_dump(data))
    capsys.readouterr()
    assert _learn(logs) == 1
    err = capsys.readouterr().err
    assert "error[PR797]" in err
    assert "rules.yaml:" in err
    assert rules.read_text() == text


def test_a_terminal_is_asked(logs: Path) -> None:
    """Class, fault and advice; then the rules are tried at once."""
    controller, terminal = pty.openpty()
    try:
        command = [sys.executable, "-m", "pairun", "diagnose", "--learn", str(logs)]
        process = subprocess.Popen(
            [*command, "--out", str(logs.parent / "rules.yaml")], stdin=terminal, stdout=terminal
        )
        os.write(controller, b"gpu_lost\n\nreset the reactor\n")
        os.close(terminal)
        shown = b""
        while b"next: copy" not in shown:
            shown += os.read(controller, 4096)
        assert process.wait(60) == 0
    finally:
        os.close(controller)
    (rule,) = yaml.safe_load((logs.parent / "rules.yaml").read_text())["rules"]
    assert (rule["class"], rule["tell"]) == ("gpu_lost", "reset the reactor")


def test_a_file_that_cannot_be_written(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is said before the logs are read."""
    out = str(tmp_path / "none" / "rules.yaml")
    assert cli.main(["diagnose", "--learn", str(logs), "--out", out]) == 1
    told = capsys.readouterr()
    assert "error[PR812]" in told.err
    assert told.out == ""


def test_ctrl_d_leaves_the_questions_open(logs: Path) -> None:
    """The draft is written without a class."""
    controller, terminal = pty.openpty()
    try:
        command = [sys.executable, "-m", "pairun", "diagnose", "--learn", str(logs)]
        process = subprocess.Popen(
            [*command, "--out", str(logs.parent / "rules.yaml")], stdin=terminal, stdout=terminal
        )
        os.write(controller, b"\x04")
        os.close(terminal)
        shown = b""
        while b"wrote" not in shown:
            shown += os.read(controller, 4096)
        assert process.wait(60) == 0
    finally:
        os.close(controller)
    (rule,) = yaml.safe_load((logs.parent / "rules.yaml").read_text())["rules"]
    assert rule["class"] == "unknown"


@pytest.mark.parametrize(
    "argv",
    [
        ["--learn", "logs"],
        ["--learn", "logs", "--out", "r.yaml", "a.log"],
        ["--learn", "logs", "--out", "r.yaml", "--json"],
        ["--out", "r.yaml", "a.log"],
        [],
    ],
)
def test_wrong_usage(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A folder and a file, and nothing else."""
    assert cli.main(["diagnose", *argv]) == 2
    assert "PR801" in capsys.readouterr().err


def test_a_folder_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file, or nothing, is no folder of logs; an empty folder needs no file of rules."""
    assert _learn(tmp_path / "none") == 1
    assert "PR108" in capsys.readouterr().err
    (tmp_path / "logs").mkdir()
    assert _learn(tmp_path / "logs") == 0
    assert not (tmp_path / "rules.yaml").exists()


@pytest.mark.slow
def test_many_logs_need_little_memory(tmp_path: Path) -> None:
    """Each with an ending of its own: what is kept does not grow with them."""
    count = cases(500)
    for n in range(count):
        word = "".join("bdkw"[n // 4**k % 4] for k in range(6))
        filler = f"step {n}\n" * 5_000
        (tmp_path / f"{n}.log").write_text(f"{filler}FATAL: the {word}flux capacitor failed\n")
    # The most memory of this program alone: what getrusage says of children includes their parents.
    code = (
        "import sys\nfrom pairun.cli.main import main\ncode = main(sys.argv[1:])\n"
        "print(*(line for line in open('/proc/self/status') if line.startswith('VmHWM')))\n"
        "sys.exit(code)"
    )
    command = [sys.executable, "-c", code, "diagnose", "--learn", str(tmp_path)]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "rules.yaml")],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert f"{count} logs, {count} without an explanation" in done.stdout
    used = re.search(r"VmHWM:\s*(\d+) kB", done.stdout)
    assert used is not None
    assert int(used[1]) < 150 * 1024


def test_an_exit_code_says_that_all_logs_are_of_failed_jobs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Logs without an error need an explanation, too; an empty one is counted and named."""
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "a.log").write_text("hello\nworld\n")
    (logs / "c.log").touch()
    assert _learn(logs) == 0
    out = capsys.readouterr().out
    assert "2 logs, 0 without an explanation" in out
    assert f"1 log empty: {logs}/c.log" in out
    assert _learn(logs, "--exit-code", "1") == 0
    assert "2 logs, 1 without an explanation" in capsys.readouterr().out


def test_what_is_wrong_with_a_call_or_a_draft_is_named(
    logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The missing option, and the nearest class instead of all of them."""
    assert cli.main(["diagnose", "--learn", str(logs)]) == 2
    assert "--out FILE is missing" in capsys.readouterr().err
    assert _learn(logs) == 0
    rules = logs.parent / "rules.yaml"
    rules.write_text(rules.read_text().replace("class: unknown", "class: gpu_omm"))
    capsys.readouterr()
    assert _learn(logs) == 1
    err = capsys.readouterr().err
    assert "'class' must be a known value (`pairun doc failures` lists them), not 'gpu_omm'" in err
    assert "did you mean 'gpu_oom'?" in err

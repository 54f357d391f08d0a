"""``pairun diagnose`` and ``pairun manifest --retry-rules``, as people and programs call them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from pairun.cli import main as cli
from tests.diagnose.cases import STEPS, TRACE

_MISSING = TRACE + "ModuleNotFoundError: No module named 'einops'\n"


def pairun(*argv: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """The command, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "pairun", *argv], input=stdin, capture_output=True, timeout=60
    )


def test_three_lines_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What happened, the line that shows it, what to do."""
    log = tmp_path / "a.log"
    log.write_text(_MISSING)
    assert cli.main(["diagnose", str(log)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "the Python package einops is missing (module_not_found, 88%, the job's own)",
        f"  {log}:4: ModuleNotFoundError: No module named 'einops'",
        "  do: install it in the image, or correct PYTHONPATH; do not run it again before that",
    ]


def test_a_pipe_and_json() -> None:
    """One object for each log, one per line."""
    done = pairun("diagnose", "--json", "--exit-code", "1", "-", stdin=_MISSING.encode())
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["class"] == "module_not_found"
    assert found["retry"] == "after_fix"
    assert found["details"]["module"] == "einops"
    assert found["evidence"][0] == {
        "file": "-",
        "line": 4,
        "text": "ModuleNotFoundError: No module named 'einops'",
    }
    assert {"schema", "log", "fault", "confidence", "headline", "alternatives"} <= found.keys()


@pytest.mark.parametrize(("given", "code"), [("-9", "137"), ("-64", "192"), ("255", "255")])
def test_a_signal_as_an_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given: str, code: str
) -> None:
    """-N, as Python and Slurm say it, is the death by signal N, which a shell calls 128+N."""
    log = tmp_path / "a.log"
    log.touch()
    told = []
    for each in (given, code):
        assert cli.main(["diagnose", "--json", "--exit-code", each, str(log)]) == 0
        told.append(json.loads(capsys.readouterr().out))
    assert told[0] == told[1]
    assert code in json.dumps(told[0])


@pytest.mark.parametrize("given", ["256", "999", "-65", "9.0", "0x9", "\u0669", "\x1b[31m", ""])
def test_what_is_no_exit_code(capsys: pytest.CaptureFixture[str], given: str) -> None:
    """A usage error that says what it may be, and nothing is diagnosed."""
    with pytest.raises(SystemExit) as e:
        cli.main(["diagnose", f"--exit-code={given}", "none.log"])
    assert e.value.code == 2
    told = capsys.readouterr()
    assert "is not an exit code: from 0 to 255, or from -1 to -64 for a signal" in told.err
    assert "\x1b" not in told.out + told.err


def test_several_logs_and_one_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """PR108 names the log that cannot be read; the others are diagnosed."""
    good = tmp_path / "good.log"
    good.write_text(STEPS)
    assert cli.main(["diagnose", str(tmp_path / "none.log"), str(good)]) == 1
    told = capsys.readouterr()
    assert "nothing is wrong in the log" in told.out
    assert "PR108" in told.err


def test_a_folder_without_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Skipped files are named, and the way to read them; an empty folder has no files."""
    assert cli.main(["diagnose", str(tmp_path)]) == 1
    assert f"{tmp_path} has no files\n" in capsys.readouterr().err
    for name in ("a.pt", "core.123", "config.json", "d.png"):
        (tmp_path / name).write_bytes(b"\x80\x02")
    assert cli.main(["diagnose", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert "has no files" not in error
    assert "has no logs; pairun reads these files only if you name them: " in error
    assert sum(name in error for name in ("a.pt", "core.123", "config.json", "d.png")) == 3


def test_archives_alone_and_beside_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without any log they are errors; beside a log the answer names them as not read."""
    for name in ("a.zip", "b.zip"):
        (tmp_path / name).write_bytes(b"PK\x03\x04" + bytes(64))
    for given in (tmp_path / "a.zip", tmp_path):
        assert cli.main(["diagnose", str(given)]) == 1
        assert "a.zip cannot be read: it is packed; unpack it first, with unzip" in (
            capsys.readouterr().err
        )
    (tmp_path / "good.log").write_text(STEPS)
    assert cli.main(["diagnose", str(tmp_path)]) == 0
    assert "not read: " in capsys.readouterr().out


def test_each_answer_names_its_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Many answers read alike; without `--each`, there is one."""
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_text(STEPS)
    assert cli.main(["diagnose", "--each", str(tmp_path)]) == 0
    heads = [line for line in capsys.readouterr().out.splitlines() if line]
    assert [head.partition(": ")[0] for head in heads] == [
        str(tmp_path / name) for name in ("a.log", "b.log")
    ]
    assert cli.main(["diagnose", str(tmp_path / "a.log")]) == 0
    assert capsys.readouterr().out.startswith("nothing is wrong in the log")


def test_lines_count_from_the_start_of_a_long_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where only parts of a log are judged, the numbers are those of the whole."""
    log = tmp_path / "long.log"
    log.write_text("0123456789abcdef\n" * 800_000 + _MISSING)
    assert cli.main(["diagnose", "--json", str(log)]) == 0
    assert json.loads(capsys.readouterr().out)["evidence"][0]["line"] == 800_004


def test_what_a_log_says_does_not_reach_the_terminal_raw(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Control and bidi characters of a log are not obeyed by the terminal that shows it."""
    log = tmp_path / "a.log"
    bad = "\x07\x1b\x7f\x90\x9b\u2028\u202e\u2066"
    log.write_bytes(f"ModuleNotFoundError: No module named '{bad}'\n".encode() + b"\x9b\n")
    for options in ([], ["--each"], ["--json"], ["--json", "--each"]):
        assert cli.main(["diagnose", *options, str(log)]) == 0
        out = capsys.readouterr().out
        assert "ModuleNotFoundError" in out
        assert not set(out) & set(bad)


def test_a_job_s_policy_gives_up_after_what_is_sure(capsys: pytest.CaptureFixture[str]) -> None:
    """After a missing command a Job gives up; what may be the job's own fault has a bound.

    A signal does not tell who sent it, and uncounted retries are unlimited.
    """
    assert cli.main(["manifest", "--retry-rules", "--engine", "job"]) == 0
    out = capsys.readouterr().out
    assert "`pairun manifest JOB`" in out.splitlines()[0]
    rules = yaml.safe_load(out)["podFailurePolicy"]["rules"]
    values = {r["action"]: r["onExitCodes"]["values"] for r in rules if "onExitCodes" in r}
    assert 127 in values["FailJob"]
    assert values["Ignore"] == [223]
    assert not {125, 129, 130, 137, 139, 143} & {*values["FailJob"], *values["Ignore"]}


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A content root that gives classes exit codes."""
    folder = tmp_path / "diagnosis"
    folder.mkdir()
    (folder / "codes.yaml").write_text("exit_codes: {gpu_oom: 20, gpu_lost: 40, segfault: 41}\n")
    return str(tmp_path)


def test_codes_of_a_root_are_in_the_policies(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The user's fault ends a Job, the hardware's costs no retry, what nobody knows counts."""
    assert cli.main(["manifest", "--retry-rules", "--engine", "jobset", "--root", root]) == 0
    found = yaml.safe_load(capsys.readouterr().out)
    rules = found["podFailurePolicy"]["rules"]
    values = {r["action"]: r["onExitCodes"]["values"] for r in rules if "onExitCodes" in r}
    assert 20 in values["FailJob"]
    assert 40 in values["Ignore"]
    assert 41 not in values["FailJob"] + values["Ignore"]
    assert found["failurePolicy"]["rules"][0]["action"] == "FailJobSet"


def test_a_policy_names_container_and_status(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit codes of pairun-init mean something else, and Kubernetes requires a status."""
    assert cli.main(["manifest", "--retry-rules", "main", "--engine", "job"]) == 0
    disrupted, *others = yaml.safe_load(capsys.readouterr().out)["podFailurePolicy"]["rules"]
    assert disrupted["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]
    assert {r["onExitCodes"]["containerName"] for r in others} == {"main"}


def test_an_exit_spec_is_one_that_pairun_reads(
    root: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exported spec has no pattern that Go's syntax cannot say."""
    from pairun.errors import Problems, Source
    from pairun.openpai.exitspec import read_exit_spec

    assert cli.main(["manifest", "--retry-rules", "--engine", "framework", "--root", root]) == 0
    text = capsys.readouterr().out
    problems = Problems()
    spec = read_exit_spec(Source("spec", "cluster", text), problems)
    assert [p.message for p in problems if p.id != "PR741"] == []
    assert {s["code"] for s in spec.data["specs"]} == {20, 40, 41}


def test_without_codes_there_is_no_exit_spec(capsys: pytest.CaptureFixture[str]) -> None:
    """PR795 says where codes are given."""
    assert cli.main(["manifest", "--retry-rules", "--engine", "framework"]) == 1
    error = capsys.readouterr().err
    assert "PR795" in error
    assert "define `exit_codes` in a file of a content root's folder diagnosis" in error


def test_lint_knows_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file of rules is linted as one, its samples tried."""
    path = tmp_path / "diagnosis" / "site.yaml"
    path.parent.mkdir()
    path.write_text(
        "rules:\n- {id: a, class: gpu_oom, patterns: [abcd], positive: [abcd, abce], negative: [x, y]}\n"
    )
    assert cli.main(["lint", str(path)]) == 1
    assert "it does not match its own sample: abce" in capsys.readouterr().err


@pytest.mark.parametrize("each", [[], ["--each"]])
def test_a_failed_job_without_a_known_cause_shows_its_last_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], each: list[str]
) -> None:
    """One log, or a folder of them, with an exit code: the class is unknown, and no log is empty."""
    for rank in (0, 1):
        (tmp_path / f"rank{rank}.log").write_text("hello\nworld\n")
    for path in (tmp_path, tmp_path / "rank0.log"):
        assert cli.main(["diagnose", *each, "--exit-code", "1", str(path)]) == 0
        shown = capsys.readouterr().out
        head = shown.partition("\n")[0]
        assert head == (f"{tmp_path / 'rank0.log'}: cause unknown" if each else "cause unknown")
        assert "rank0.log:2: world\n" in shown
        assert "empty" not in shown


def test_exit_code_0_means_none_for_a_folder_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The headline names the error that a log shows, as it does for one log."""
    (tmp_path / "rank0.log").write_text(_MISSING)
    (tmp_path / "rank1.log").write_text("hello\n")
    assert cli.main(["diagnose", "--exit-code", "0", "--json", str(tmp_path)]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["class"] == "none"
    assert answer["headline"] == (
        "exit code 0, but the log shows an error: the Python package einops is missing"
    )
    assert answer["incident"]["first"] is None


_DEEP = '{"message": ' + "[" * 100_000


@pytest.mark.parametrize(
    "files",
    [
        {"pai/logs/pod/journal.jsonl": _DEEP, "pai/logs/pod/user-all/current": _MISSING},
        {"pai/logs/pod/progress.json": _DEEP, "pai/logs/pod/user-all/current": _MISSING},
        {"a.log": '{"message": "step"}\n' + _DEEP + "\n" + _MISSING},
        {"a.log": "[\n" + _DEEP + "\n" + _MISSING},
        {"a.log": _MISSING, "pods.json": '{"apiVersion": "v1", "items":' + "[" * 100_000},
        {"a.log": _MISSING, "pods.json": '{"kind": "Pod", "status": {"reason": ' + "[" * 100_000},
        {"a.log": _MISSING, "nccl_trace_rank_0.json": '{"entries":' + "[" * 100_000},
    ],
    ids=["journal", "progress", "JSON lines", "objects", "a list", "a Pod", "flight recorder"],
)
def test_json_that_is_nested_too_deeply_hides_no_cause(
    tmp_path: Path, files: dict[str, str]
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    done = pairun("diagnose", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"the Python package einops is missing" in done.stdout

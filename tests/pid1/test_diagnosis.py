"""Why a command died, as PID 1 tells it: on the container's streams, to the platform, in the journal."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from pairun.base.paths import STOP_NOTE
from pairun.errors import Problems
from pairun.playbook.content import open_content
from pairun.playbook.readyrules import made_rules, packed

MISSING = "echo \"ModuleNotFoundError: No module named 'frobnicate'\" >&2; exit 1"

ECC = "<ecc_errors><volatile><dram_uncorrectable>2</dram_uncorrectable></volatile></ecc_errors>"


class Rules:
    """A volume with the rules that init leaves, and what the phase leaves."""

    def __init__(self, volume: Any, folder: pathlib.Path) -> None:
        self.volume = volume
        self.path = folder / "termination-log"
        self.logs = volume.root / "logs" / "local"
        self.logs.mkdir(parents=True)
        self.env = {"PAIRUN_TERMINATION_LOG": str(self.path)}
        self.of([])

    def of(self, roots: list[str]) -> None:
        """Leave the rules of content roots."""
        problems = Problems()
        data = made_rules(open_content(roots, {}), problems)
        assert list(problems) == []
        (self.volume.files / "diagnosis.json.z").write_bytes(packed(data))

    @property
    def message(self) -> Any:
        """The termination message, taken apart as OpenPAI's REST server does."""
        found = re.search(r"ERROR_START\]([\s\S]*)\[PAI", self.path.read_text())
        assert found is not None
        return yaml.safe_load(found[1])

    @property
    def journal(self) -> list[dict[str, Any]]:
        """What the journal has of a diagnosis."""
        lines = (self.logs / "journal.jsonl").read_text().splitlines()
        return [r for r in map(json.loads, lines) if r["type"] == "diagnosis"]


@pytest.fixture
def rules(volume: Any, tmp_path: pathlib.Path) -> Rules:
    """The built-in rules."""
    return Rules(volume, tmp_path)


def test_three_lines_a_message_and_a_record(volume: Any, start: Any, rules: Rules) -> None:
    """What happened, its evidence, what to do: for people, the platform and the report."""
    volume.command(MISSING)
    run = start(**rules.env)
    assert run.end() == 1
    told = run.got("[pairun] ")[-3:]
    assert "frobnicate is missing (module_not_found" in told[0]
    assert "No module named 'frobnicate'" in told[1]
    assert "do: " in told[2]
    why = rules.message["diagnosis"]
    assert (why["class"], why["fault"], why["retry"]) == ("module_not_found", "user", "after_fix")
    assert "No module named 'frobnicate'" in why["evidence"]
    (record,) = rules.journal
    assert record["details"]["module"] == "frobnicate"


def test_success_needs_no_reason(volume: Any, start: Any, rules: Rules) -> None:
    """Nobody asks why where nothing failed, whatever the log holds."""
    volume.command("echo CUDA out of memory")
    assert start(**rules.env).end() == 0
    assert not rules.path.exists()
    assert rules.journal == []


def test_a_cluster_gives_a_class_its_own_exit_code(
    volume: Any, start: Any, rules: Rules, tmp_path: pathlib.Path
) -> None:
    """Where no entry of an exit spec matches, and the diagnosis is sure."""
    (tmp_path / "root" / "diagnosis").mkdir(parents=True)
    codes = "exit_codes: {module_not_found: 77}\n"
    (tmp_path / "root" / "diagnosis" / "codes.yaml").write_text(codes)
    rules.of([str(tmp_path / "root")])
    volume.command(MISSING)
    run = start(**rules.env)
    file = tmp_path / "root" / "diagnosis" / "codes.yaml"
    run.line(f"[pairun] exit_codes in {file} replaces exit code 1 by 77")
    assert run.end() == 77
    assert rules.message["exitCode"] == 77
    assert rules.message["originUserExitCode"] == 1


def test_our_own_stop_is_known(volume: Any, start: Any, rules: Rules) -> None:
    """A command that ends because the container was told to stop was stopped from outside."""
    volume.command("trap 'exit 3' TERM; echo ready; sleep 60 & wait")
    run = start(**rules.env)
    run.line("ready")
    run.signal(signal.SIGTERM)
    assert run.end() == 3
    assert rules.message["diagnosis"]["class"] == "terminated_sigterm"


@pytest.mark.slow
def test_ctrl_c_is_the_persons(volume: Any, start: Any, rules: Rules) -> None:
    """A SIGINT to PID 1, as `docker run` sends it for Ctrl-C, is no stop by the platform."""
    volume.command("trap 'exit 3' INT; echo ready; sleep 60 & wait")
    run = start(**rules.env)
    run.line("ready")
    run.signal(signal.SIGINT)
    assert run.end() == 3
    why = rules.message["diagnosis"]
    assert (why["class"], why["fault"]) == ("cancelled_by_user", "user")
    assert "SIGINT (Ctrl-C)" in why["evidence"]


@pytest.mark.parametrize(
    ("note", "headline", "fault"),
    [
        ('{"by_person": true, "words": "Ctrl-C stopped it"}', "Ctrl-C stopped it", "user"),
        ('{"by_person": false, "words": "the job is complete"}', "the job is complete", "unknown"),
        ('{"by_person": true}', "the job was stopped from outside", "platform"),
        ("[1]", "the job was stopped from outside", "platform"),
        ("{" * 9000, "the job was stopped from outside", "platform"),
    ],
    ids=["a person", "the engine", "no words", "no note", "too long"],
)
def test_the_note_of_the_engine_says_who_stopped_it(
    volume: Any, start: Any, rules: Rules, note: str, headline: str, fault: str
) -> None:
    """`pairun run` leaves one before it sends SIGTERM; one that cannot be read is none."""
    volume.command("echo ready; sleep 60 & wait")
    (volume.root / STOP_NOTE).write_text(note)
    run = start(**rules.env)
    run.line("ready")
    run.signal(signal.SIGTERM)
    assert run.end() == 143
    why = rules.message["diagnosis"]
    assert (why["headline"], why["fault"]) == (headline, fault)
    is_note = headline != "the job was stopped from outside"
    (received,) = (line for line in run.got("[pairun] ") if "received SIGTERM" in line)
    # without a PID namespace the kernel names the sender
    assert "from outside this container" not in received or not is_note
    assert "from `pairun run`; " in received or "from process " in received or not is_note
    doubt = r"cancelled_by_user, the job's own" if fault == "user" else r"terminated_sigterm, \d\d%"
    assert any(
        re.search(re.escape(headline) + rf" \({doubt}", line) for line in run.got("[pairun] ")
    )
    assert not any("do not run it again" in line for line in run.got("[pairun] "))


ERREXIT = """set -o errexit
set -o nounset
if (set -o pipefail) 2>/dev/null; then set -o pipefail; fi
"""
NO_SSH = "ssh() { return 255; }\n"
BY_SSH = "ssh ends with 255 if it cannot connect or loses the connection"
SET_X = "add `set -x` as the first command: the log then shows each one before it runs"


@pytest.mark.parametrize(
    ("script", "headline", "evidence", "advice"),
    [
        ("false\necho last", "`false` failed with exit code 1", "the log is empty", "correct it, or append `|| true`"),
        ("echo a\ngrep -q x /dev/null", "`grep -q x /dev/null` failed with exit code 1", "a", ""),
        ("true\n( exit 7 )\n", "a command failed with exit code 7", "one of: `true`; `( exit 7 )`", SET_X),
        ("set -x\ntrue\nfalse", "a command failed with exit code 1", "one of: `true`; `false`", "read the last lines"),
        ("set +e\ntrue\nfalse", "the log is empty", "", "check where"),
        (f"{NO_SSH}ssh w-1 hostname", "a command, probably `ssh w-1 hostname`, failed with exit code 255", BY_SSH, "check that the other container"),
    ],
    ids=["silent", "after output", "several", "traced", "without errexit", "ssh"],
)  # fmt: skip
def test_errexit_ends_a_script_without_a_word(
    volume: Any, start: Any, rules: Rules, script: str, headline: str, evidence: str, advice: str
) -> None:
    """If nothing else says why, pairun names the commands of which one failed."""
    volume.command(ERREXIT + script)
    run = start(**rules.env)
    assert run.end() != 0
    (why,) = rules.journal
    assert why["class"] == "unknown"
    assert why["headline"].startswith(headline)
    assert ("; no command after it ran" in why["headline"]) == ("set +e" not in script)
    assert evidence in [e["text"] for e in why["evidence"]] or not evidence
    assert why["advice"].startswith(advice)
    lines = run.got("[pairun] ")
    assert f"[pairun] {why['headline']}" in lines
    assert (
        f"[pairun]   {evidence}" in [re.sub(r"log:\d+: ", "", each) for each in lines]
        or not evidence
    )


@pytest.mark.parametrize(
    "spoil",
    [
        lambda p: p.unlink(),
        lambda p: p.write_bytes(p.read_bytes()[:1000]),
        lambda p: p.write_bytes(packed(b'{"schema": 99}')),
        lambda p: p.write_bytes(packed(b"\xff")),
        lambda p: p.write_text("{}"),
    ],
    ids=["missing", "torn", "of another version", "no text", "not compressed"],
)
def test_rules_that_cannot_be_read_cost_nothing_else(
    volume: Any, start: Any, rules: Rules, spoil: Callable[[pathlib.Path], None]
) -> None:
    """The exit code and the rest of the message stand."""
    spoil(rules.volume.files / "diagnosis.json.z")
    volume.command(MISSING)
    assert start(**rules.env).end() == 1
    assert "diagnosis" not in rules.message
    assert "frobnicate" in rules.message["errorLogs"]["user"]


def test_a_command_is_masked_before_it_is_cut(volume: Any, start: Any, rules: Rules) -> None:
    """A part of a secret, at the end of a long command or in a line of its own, is not shown."""
    secrets = {"schema": 2, "values": {}, "redact": ["hunter22hunter22", "hunt1 \\\n hunt2"]}
    (rules.volume.files / "secrets.json").write_text(json.dumps(secrets))
    volume.command(
        f"{ERREXIT}test {'x' * 47} = hunter22hunter22 -a y\ntest 'hunt1 \\\n hunt2' = y\n"
    )
    run = start(**rules.env)
    assert run.end() != 0
    (why,) = rules.journal
    assert "failed with exit code" in why["headline"]
    assert "hunt" not in json.dumps(why) + "\n".join(run.got("[pairun] "))


def test_a_secret_is_no_evidence(volume: Any, start: Any, rules: Rules) -> None:
    """What no log may show is in no reason either."""
    secrets = {"schema": 2, "values": {}, "redact": ["hunter22"]}
    (rules.volume.files / "secrets.json").write_text(json.dumps(secrets))
    volume.command("echo \"ModuleNotFoundError: No module named 'hunter22'\" >&2; exit 1")
    run = start(**rules.env)
    assert run.end() == 1
    assert "hunter22" not in rules.path.read_text()
    assert "hunter22" not in json.dumps(rules.journal)
    assert not any("hunter22" in line for line in run.got(""))


def test_torchelastic_s_error_file_counts(
    volume: Any, start: Any, rules: Rules, tmp_path: pathlib.Path
) -> None:
    """The first worker's own error decides where the log has nothing but the launcher's."""
    error = {"message": {"message": "ModuleNotFoundError: No module named 'frobnicate'"}}
    (tmp_path / "error.json").write_text(json.dumps(error))
    volume.command(
        "echo 'torch.distributed.elastic.multiprocessing.errors.ChildFailedError:'; exit 1"
    )
    env = {**rules.env, "TORCHELASTIC_ERROR_FILE": str(tmp_path / "error.json")}
    assert start(**env).end() == 1
    assert rules.message["diagnosis"]["class"] == "module_not_found"


@pytest.mark.parametrize("budget", [256, 400, 700, 4096])
def test_the_message_keeps_its_size(volume: Any, start: Any, rules: Rules, budget: int) -> None:
    """Whatever the budget: it parses, and the class is the last to go."""
    volume.command("seq 1 2000; " + MISSING)
    assert start(**rules.env, PAIRUN_TERMINATION_BYTES=str(budget)).end() == 1
    assert len(rules.path.read_bytes()) <= budget
    assert rules.message["diagnosis"]["class"] == "module_not_found"


@pytest.mark.parametrize(
    ("report", "klass"),
    [
        ('<gpu id="1"></gpu>', "gpu_lost"),
        (f'<gpu id="0">{ECC}</gpu><gpu id="1"></gpu>', "gpu_ecc_error"),
    ],
    ids=["one of two is seen", "one has a memory error"],
)  # fmt: skip
def test_what_the_driver_shows_counts(
    volume: Any, start: Any, rules: Rules, tmp_path: pathlib.Path, report: str, klass: str
) -> None:
    """The state of the GPUs at the end says what a log without a word of them does not."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "nvidia-smi").write_text(
        f"#!/bin/sh\ncat <<'X'\n<nvidia_smi_log>{report}</nvidia_smi_log>\nX\n"
    )
    (tmp_path / "bin" / "nvidia-smi").chmod(0o755)
    volume.command("echo it failed; exit 1")
    env = {"PAI_CURRENT_TASK_ROLE_NAME": "w", "PAI_RESOURCE_w": "2,4,1024,0",
           "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}  # fmt: skip
    assert start(**rules.env, **env).end() == 1
    assert rules.message["diagnosis"]["class"] == klass


def test_a_restart_that_fails_at_the_same_step_says_so(
    volume: Any, start: Any, rules: Rules
) -> None:
    """The Pod's journal keeps the first attempt; the advice names the fact that decided."""
    volume.command(
        "echo step 40 loss 1; echo 'OSError: [Errno 98] Address already in use'; exit 1\n"
    )
    assert start(**rules.env).end() == 1
    assert rules.message["diagnosis"]["retry"] == "retry"
    run = start(**rules.env)
    assert run.end() == 1
    why = rules.message["diagnosis"]
    assert why["retry"] == "after_fix"
    same = "the same failure 2 times, without progress: step 40 after step 40"
    assert same in why["advice"]
    assert same in run.got("[pairun] ")[-1]
    assert [record["retry"] for record in rules.journal] == ["retry", "after_fix"]
    assert rules.journal[-1]["details"]["step"] == "40"

"""The cause before its consequences, nothing of what was handled, and honesty about the rest."""

from __future__ import annotations

import codecs
import gzip
import json
import random
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.classes import CLASSES, NONE, UNKNOWN
from pairun.diagnose.diagnosis import Diagnosis, diagnosis_lines
from pairun.diagnose.lines import Log
from pairun.diagnose.table import Table, parse_table
from pairun.diagnose.weighing import diagnose, exit_code_of
from pairun.playbook.readyrules import packed
from pairun.playbook.rules import Rules
from tests.diagnose.cases import FAILED, HEALTHY, STEPS, TRACE, WATCHDOG
from tests.effort import cases

_OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total\n"


def said(text: str, table: Table, **facts: object) -> Diagnosis:
    """The diagnosis of a text."""
    return diagnose([Log(text.encode(), "log")], table, Circumstances(**facts))  # type: ignore[arg-type]


@pytest.mark.parametrize("case", FAILED, ids=lambda c: c[0])
def test_a_failure_has_its_class(case: tuple[str, int | None, str], table: Table) -> None:
    """With the exit code and without, a failure gets the class of what caused it."""
    klass, code, text = case
    assert said(text, table, exit_code=code).klass == klass
    if klass != UNKNOWN:
        assert said(text, table).klass == klass


@pytest.mark.parametrize("text", HEALTHY)
@pytest.mark.parametrize("code", [0, None])
def test_a_healthy_log_raises_no_alarm(text: str, code: int | None, table: Table) -> None:
    """Frightening words in a log that goes on are no failure."""
    assert said(text, table, exit_code=code).klass == NONE


def test_every_class_is_known_by_a_rule_or_by_an_exit_code(table: Table) -> None:
    """No class of the published tables is without a rule."""
    assert {r.klass for r in table.rules.values()} >= CLASSES.keys() - {NONE, UNKNOWN}


_STAMP = "[Fri Nov 20 13:19:35 UTC 2026] [openpai-runtime] "


@pytest.mark.parametrize(
    "line",
    [
        f"{_STAMP}[INFO] USER COMMAND START",
        f"{_STAMP}starting the command: bash: nosuch: command not found",
        f"{_STAMP}         No space left on device [permanent; fault: user]",
        "[pairun] the kernel killed 1 process of this container for its memory",
        "[pairun] ModuleNotFoundError: No module named 'apex'",
        "error[PR704]: there is no bash in PATH: No such file or directory",
        "         No space left on device [not retried; fault: user]",
    ],
)
def test_lines_of_pairuns_own_are_no_evidence(line: str, table: Table) -> None:
    """What pairun says of a failure is not taken for its cause, nor shown as evidence."""
    diagnosis = said(f"[pairun] begins\n{line}\nthe last line\n", table, exit_code=1)
    assert diagnosis.klass == UNKNOWN
    assert [e.text for e in diagnosis.evidence] == ["the last line"]
    assert diagnosis.evidence[0].line == 3


def test_what_a_task_prints_is_evidence(table: Table) -> None:
    """The output of a plugin's script in ``runtime.log`` is not pairun's own."""
    line = f"{_STAMP}  cmd | ModuleNotFoundError: No module named 'apex'"
    assert said(line, table, exit_code=1).klass == "module_not_found"


@pytest.mark.parametrize("stamp", [_STAMP, ""])
def test_what_a_task_printed_before_the_command_is_no_evidence(stamp: str, table: Table) -> None:
    """The task succeeded, for the job's command started after it."""
    start = _STAMP if stamp else "[pairun] "
    task = f"{stamp}  ssh | Permission denied (publickey)\n{stamp}  ssh | 1 of 2 hosts answer\n"
    log = f"{task}{start}starting the command: bash user.sh\n"
    ended = f"{start}the command ended with 255 after 3.0 s\n"
    found = said(log + ended, table, exit_code=255)
    assert (found.klass, found.headline) == (UNKNOWN, "the log is empty")
    found = said(f"{log}  a | 7\n{ended}", table, exit_code=255)
    assert [(e.line, e.text) for e in found.evidence] == [(4, "a | 7")]


def test_a_diagnosis_shows_what_it_rests_on(table: Table) -> None:
    """File, number and text of the line, what it names, and where in the job's code it was."""
    found = said("a\nb\n" + TRACE + _OOM, table)
    assert found.evidence[0] == ("log", 6, _OOM.strip())
    assert found.details["size"] == "2.00 GiB"
    assert found.details["gpu"] == "3"
    assert (found.details["code_file"], found.details["code_line"]) == ("/job/train.py", "41")
    assert found.headline == "GPU memory is full: 2.00 GiB more were asked for"
    assert (found.fault, found.retry) == ("user", "after_fix")


def test_the_line_of_the_code_is_named(table: Table) -> None:
    """The headline and the advice name file and line of the job's code, not of the log."""
    found = said(TRACE + "KeyError: 'k'\n", table, exit_code=1)
    assert found.headline == "the job's own code failed at /job/train.py:41: KeyError: 'k'"
    assert found.advice == "correct /job/train.py, line 41"
    syntax = '  File "/job/train.py", line 3\n    if x\n        ^\nSyntaxError: invalid syntax\n'
    assert said(syntax, table, exit_code=1).advice == "correct /job/train.py, line 3"
    shape = TRACE + "RuntimeError: mat1 and mat2 shapes cannot be multiplied (6x5 and 1x1)\n"
    assert said(shape, table, exit_code=1).advice.endswith(" at /job/train.py, line 41")


def test_a_library_is_not_what_to_correct(table: Table) -> None:
    """For a traceback with no line of the job's code, the advice names the call, not the line."""
    library = TRACE.replace("/job/train.py", "/usr/lib/python3.11/runpy.py")
    found = said(library + "KeyError: 'k'\n", table, exit_code=1)
    assert found.advice == "correct your call that leads to /usr/lib/python3.11/runpy.py"
    assert "runpy.py:" in found.headline


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("/usr/local/pai/runtime.d/user.sh: line 5: NOPE: unbound variable", ": line 5"),
        ("dash: 1: NOPE: parameter not set", ": 1"),
        ("sh: NOPE: parameter not set", ""),
    ],
)
def test_an_unset_variable_is_named_with_what_makes_it_an_error(
    line: str, place: str, table: Table
) -> None:
    """The headline names the variable, the shell's line and the setting, in every shell's words."""
    found = said(f"{line}\nprinted before it, read after it\n", table, exit_code=1)
    shell = line.split(":", maxsplit=1)[0]
    unset = f"the variable NOPE is unset in {shell}{place}"
    headline = f"{unset}; nounset (set -u) makes that an error"
    assert (found.klass, found.fault, found.headline) == ("shell_error", "user", headline)
    assert "nounset: false" in found.advice
    assert said(line, table, exit_code=127).headline == headline


def test_a_program_that_python_cannot_open_is_named(table: Table) -> None:
    """The advice says where commands start, because the path was meant from another folder."""
    at = "/w/pairun-run/j/w-0/work/train.py"
    line = f"python3: can't open file '{at}': [Errno 2] No such file or directory\n"
    found = said(line, table, exit_code=2)
    assert (found.klass, found.headline) == ("file_not_found", f"Python finds no program at {at}")
    assert "absolute path" in found.advice


def test_a_consequence_is_an_alternative(table: Table) -> None:
    """What others did when somebody failed is reported after the cause."""
    found = said(TRACE + _OOM + WATCHDOG, table)
    assert found.klass == "gpu_oom"
    assert "nccl_timeout" in dict(found.alternatives)


def test_evidence_starts_with_a_word_and_a_cut_end_is_marked(table: Table) -> None:
    """The lines for people end with an ellipsis; data has a plain part of the log's line."""
    line = "a_long_word " * 100 + "CUDA out of memory. Tried to allocate 2.00 GiB" + " more" * 100
    diagnosis = said(line, table)
    assert diagnosis.evidence[0].text in line
    assert diagnosis.evidence[0].text.startswith("a_long_word ")
    shown = diagnosis_lines(diagnosis)[1]
    assert shown.endswith("…")
    assert len(shown) < 220


def test_of_a_long_line_the_part_that_tells_is_shown(table: Table) -> None:
    """The evidence of a line that fills a screen has the rule's words in it."""
    found = said("x" * 2000 + " CUDA out of memory. Tried to allocate 2.00 GiB" + "y" * 1500, table)
    assert "CUDA out of memory" in found.evidence[0].text
    assert len(found.evidence[0].text) <= 400


@pytest.mark.parametrize(
    ("line", "decisive"),
    [
        ("[launch.py:322:sigkill_handler] ['python', " + "'--an-option', " * 40 + "] exits with return code = -7", "return code = -7"),
        ("E0601 10:00:00.0 1 api.py:8] " + "a-worker " * 30 + "failed (exitcode: -11) local_rank: 0 (pid: 71)", "exitcode: -11"),
        ("A note. " * 60 + "The step failed. RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB", "CUDA out of memory"),
        ("subprocess.CalledProcessError: Command '" + "--an-option " * 60 + "' returned non-zero exit status 3.", "exit status 3"),
    ],
)  # fmt: skip
def test_a_long_line_is_cut_around_its_decisive_words(
    line: str, decisive: str, table: Table
) -> None:
    """They are among what people see, after the start of a word or a sentence."""
    found = said(line, table)
    text = found.evidence[0].text
    assert decisive in diagnosis_lines(found)[1]
    assert line[line.index(text) - 1].isspace()
    if ". " in line:
        assert line[: line.index(text)].rstrip().endswith(".")


def test_a_failure_long_after_a_stop_is_the_job_s_own(table: Table) -> None:
    """A log that a second run is appended to tells of the second."""
    stop = "Main process received SIGTERM, exiting\n"
    healthy = "".join(f"[INFO] batch {n} of 3000 was read\n" for n in range(1000))
    assert said(stop + healthy + TRACE + "KeyError: 'x'\n", table).klass == "user_code_error"
    assert said(stop + TRACE + "KeyError: 'x'\n", table).klass == "terminated_sigterm"


_PREEMPTED = "*** JOB 7 ON n4 CANCELLED AT 2024-01-01T00:00:00 DUE TO PREEMPTION ***\n"
_NETWORK = "n1:7:9 [0] NCCL WARN NET/IB : Got completion from peer 10.0.0.4<3> with error 12\n"


def test_the_network_of_a_job_that_is_torn_down_is_no_cause(table: Table) -> None:
    """What ranks say of each other after a stop from outside is said of the stop."""
    assert said(STEPS + _PREEMPTED + _NETWORK, table).klass == "terminated_sigterm"
    assert said(STEPS + _NETWORK + _PREEMPTED, table).klass == "nccl_system_error"


_HANDLING = "\nDuring handling of the above exception, another exception occurred:\n\n"


def test_what_ray_guesses_is_no_evidence(table: Table) -> None:
    """A list of common causes follows every worker that is gone; none of them was seen."""
    guesses = "(1) the process was killed by the OOM killer, (2) it crashed due to SIGSEGV"
    for begin in ("There are some potential root causes.", "Some common causes include:"):
        text = f"ray.exceptions.ActorDiedError: The actor died unexpectedly. {begin} {guesses}\n"
        found = said(text, table)
        assert found.klass == "peer_lost"
        assert not {"host_oom", "segfault"} & {klass for klass, _ in found.alternatives}


def test_a_program_loses_its_terminal_while_it_is_stopped(table: Table) -> None:
    """An I/O error after the time limit is a consequence; before it, the storage is the cause."""
    stop = "salloc: Job 7 has exceeded its time limit and its allocation has been revoked.\n"
    lost = "tcsetattr: Input/output error\n"
    assert said(stop + lost, table).klass == "time_limit"
    assert said(lost + stop, table).klass == "storage_io_error"


def test_a_program_that_aborts_itself_was_not_killed(table: Table) -> None:
    """The launcher kills the ranks of a program that calls MPI_Abort."""
    abort = "application called MPI_Abort(MPI_COMM_WORLD, 1) - process 0\n"
    bad = "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   EXIT CODE: 9\n"
    assert said(abort + bad, table).klass == "child_failed"
    assert said(bad, table).klass == "host_oom"


@pytest.mark.parametrize(("level", "klass"), [("W", NONE), ("E", "storage_io_error")])
def test_a_level_may_be_a_letter_in_brackets(level: str, klass: str, table: Table) -> None:
    """As Abseil's loggers and TensorRT's print it."""
    line = f"01:06:35.612 [{level}] cannot read the cache: Input/output error (26:cache.py:9)\n"
    assert said(STEPS + line, table).klass == klass


def test_a_command_that_failed_before_a_stop_was_outlived(table: Table) -> None:
    """A shell goes on after it, until the scheduler ends the job."""
    missing = "CommandNotFoundError: the shell has no 'conda activate'\n"
    stop = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2024-01-01T00:00:00 DUE TO TIME LIMIT ***\n"
    assert said(missing + stop, table).klass == "time_limit"
    assert said(stop + missing, table).klass == "time_limit"
    assert said(missing, table).klass == "command_not_found"


def test_what_a_script_only_tried_is_no_failure(table: Table) -> None:
    """A probe by `python -c`, or conda's complaint, is outlived by what the script does then."""
    probe = f"{TRACE.replace('/job/train.py', '<string>')}ModuleNotFoundError: No module named 'torch'\n"
    conda = "CondaError: Run 'conda init' before 'conda activate'\n"
    reports = "".join(f"2024-01-01 10:0{n}:00 INFO runner.py:9 -- round {n}\n" for n in range(5))
    for text in (probe, conda):
        assert said(text, table).retry == "after_fix"
        assert said(text + reports, table).retry is None


@pytest.mark.parametrize(
    "stop",
    [
        "run.sh: line 3:    77 Terminated              python train.py",
        "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2024-01-01T00:00:00 DUE TO TIME LIMIT ***",
    ],
)
@pytest.mark.parametrize(("klass", "exception"), [
    ("module_not_found", "ModuleNotFoundError: No module named 'apex'"),
    ("file_not_found", "FileNotFoundError: [Errno 2] No such file or directory: '/data/x'"),
    ("permission_denied", "PermissionError: [Errno 13] Permission denied: '/data/x'"),
])  # fmt: skip
def test_an_exception_that_ended_a_program_was_not_outlived(
    klass: str, exception: str, stop: str, table: Table
) -> None:
    """One rank fails and the others are stopped for it: the exception stays the cause."""
    expected = {klass, "time_limit"} if "TIME LIMIT" in stop else {klass}
    found = said(f"{TRACE}{exception}\n{stop}\n", table)
    assert found.klass in expected
    assert klass in {found.klass, *(k for k, c in found.alternatives if c >= 0.8)}


def test_a_program_that_goes_on_reporting_did_not_end_of_a_file(table: Table) -> None:
    """No advice is given on what the program recovered from."""
    reports = "".join(f"2024-01-01 10:0{n}:00 INFO runner.py:9 -- round {n}\n" for n in range(5))
    assert said("cannot open the log: Permission denied\n", table).retry == "after_fix"
    assert said(f"cannot open the log: Permission denied\n{reports}", table).retry is None


def test_the_line_that_raises_stands_in_for_an_exception_that_is_cut_off(table: Table) -> None:
    """A last frame's ``raise`` tells the type, and less surely; within a traceback it is source."""
    frame = '  File "/job/m.py", line 4, in f\n    raise ModuleNotFoundError(name)\n'
    found = said(STEPS + TRACE + frame, table)
    assert (found.klass, found.confidence) == ("module_not_found", 0.68)
    assert said(STEPS + TRACE + frame + "KeyError: 3\n", table).klass == "user_code_error"


def test_what_tensorflow_says_of_a_failed_operation_is_no_mere_warning(table: Table) -> None:
    """TensorFlow prints the failure of an operation as a warning, and may print nothing else."""
    line = "OP_REQUIRES failed at save_restore_v2_ops.cc:9 : RESOURCE_EXHAUSTED: /a; No space left on device\n"
    for prefix in (
        "2024-01-01 00:00:00.1: W tensorflow/core/framework/op_kernel.cc:1753] ",
        "W0000 00:00:1700000000.123456   77 op_kernel.cc:1841] ",
    ):
        assert said(prefix + line, table).klass == "disk_full"


def test_an_error_that_is_tried_again_in_the_next_line_was_handled(table: Table) -> None:
    """The announcement of another attempt takes it back, unless that was the last."""
    line = "ReadTimeout('no answer') thrown while requesting GET https://hub.example.com/a\n"
    assert said(line + "Retrying in 2s [Retry 2/5].\n", table).klass == NONE
    assert said(line + "Retrying in 8s [Retry 5/5].\n", table).klass == "network_unreachable"


_ODD = "E0102 10:00:00.123456 77 thing.cc:7] the thing is odd\n"
_NOISE = "E0000 00:00:17.123456 77 cuda_dnn.cc:83] Unable to register cuDNN factory: once more\n"


@pytest.mark.parametrize(
    ("text", "klass", "confidence"),
    [
        (STEPS, NONE, 0.9),
        ("hello\nTraining finished\n", NONE, 0.9),
        ("hello\n", UNKNOWN, 0.3),
        ("hello\n7 files written\n", NONE, 0.7),
        ("hello\n" + _NOISE, NONE, 0.7),
        ("hello\n" + _ODD, UNKNOWN, 0.3),
        ("hello\n2024-01-01 00:00:00.1: E external/a/b.cc:96] odd\n", UNKNOWN, 0.3),
        (_ODD + STEPS[:200], NONE, 0.9),
        (STEPS + TRACE, UNKNOWN, 0.3),
        (STEPS + TRACE.splitlines()[0], UNKNOWN, 0.3),
        ("hello\n*** Aborted at 17 (unix time) ***\nPC: @ 0x0 (unknown)\n", UNKNOWN, 0.3),
    ],
)
def test_nothing_is_wrong_where_the_end_is_good(
    text: str, klass: str, confidence: float, table: Table
) -> None:
    """Success or progress makes it sure; an open traceback or an error's level makes it unknown."""
    found = said(text, table)
    assert (found.klass, found.confidence) == (klass, confidence)


@pytest.mark.parametrize(
    "line",
    [
        "this node reports 0 usable accelerators, expected 8",
        "please install 'datasets' first",
        "the checkpoint was not saved",
        "control room",
        "",
    ],
)
def test_without_a_sign_of_success_the_cause_is_unknown(line: str, table: Table) -> None:
    """A log that pairun does not understand is not called healthy; its exit code decides."""
    found = said(f"{line}\n", table)
    assert (found.klass, found.confidence) == (UNKNOWN, 0.3)
    assert said(f"{line}\n", table, exit_code=0).klass == NONE


def test_what_is_unsure_forbids_nothing(table: Table) -> None:
    """An exception that nobody knows is no reason not to run a job again."""
    found = said(TRACE + "some.library.Strange: 7\n", table)
    assert (found.klass, found.retry) == ("user_code_error", None)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "the log is empty"),
        (b" \n\r\n", "the log is empty"),
        (gzip.compress(bytes(range(256)) * 64), "the log is not text"),
        (random.Random(7).randbytes(5000), "the log is not text"),
    ],
)
def test_what_cannot_be_read_is_not_called_healthy(data: bytes, words: str, table: Table) -> None:
    """An empty or packed log says nothing, unless the exit code tells that all is well."""
    for facts in (Circumstances(), Circumstances(exit_code=1)):
        found = diagnose([Log(data, "log")], table, facts)
        assert (found.klass, found.headline, found.evidence) == (UNKNOWN, words, ())
        assert found.confidence == 0.3
    found = diagnose([Log(data, "log")], table, Circumstances(exit_code=0))
    assert (found.klass, found.confidence) == (NONE, 0.9)


def test_a_good_end_does_not_hide_what_was_said(table: Table) -> None:
    """A pipe ends as its last command did; the failure is shown, and no advice is given."""
    found = said(f"{TRACE}{_OOM}", table, exit_code=0)
    assert (found.klass, found.retry) == (NONE, None)
    assert found.headline.startswith("exit code 0, but the log shows an error: GPU memory is full")
    assert found.evidence[0].text == _OOM.strip()
    assert said(f"{TRACE}{_OOM}{STEPS}", table, exit_code=0).evidence == ()


def test_without_a_cause_the_last_lines_are_shown(table: Table) -> None:
    """Nobody knows: the last lines are all there is to say."""
    found = said(STEPS + "odd\n", table, exit_code=9)
    assert (found.klass, found.retry) == (UNKNOWN, None)
    assert found.evidence[-1].text == "odd"


def test_without_a_cause_the_last_complaint_is_shown_first(table: Table) -> None:
    """It is far above the end of a log whose exit code shows a failure."""
    found = said("Fatal error: 7\n" + "a line\n" * 50, table, exit_code=9)
    assert [found.evidence[0].text, found.evidence[1].text] == ["Fatal error: 7", "a line"]


@pytest.mark.parametrize(
    ("text", "facts", "klass"),
    [
        (STEPS, {"exit_code": 137, "oom_kills": 1}, "host_oom"),
        (STEPS, {"exit_code": 137, "oom_kills": 0, "stopped": True}, "terminated_sigterm"),
        (TRACE + "KeyboardInterrupt\n", {"exit_code": 1, "stopped": True}, "terminated_sigterm"),
        (TRACE + "KeyError: 1\n", {"exit_code": 143, "stopped": True}, "terminated_sigterm"),
        (TRACE + _OOM, {"exit_code": 143, "stopped": True}, "gpu_oom"),
        (STEPS, {"exit_code": 1, "double_ecc": True}, "gpu_ecc_error"),
        (STEPS, {"exit_code": 1, "disk_free": 0}, "disk_full"),
        (STEPS, {"exit_code": 135, "shm_free": 0}, "shm_too_small"),
        (STEPS, {"exit_code": 1, "gpus_asked": 8, "gpus_seen": 7}, "gpu_lost"),
        (STEPS, {"exit_code": 1, "gpus_asked": 8, "gpus_seen": 0}, "gpu_not_available"),
        (STEPS, {"exit_code": 1, "error_file": _OOM}, "gpu_oom"),
        (STEPS, {"exit_code": 139}, "segfault"),
        (STEPS, {"exit_code": 127}, "command_not_found"),
        (TRACE + _OOM, {"exit_code": 0}, NONE),
    ],
)
def test_facts_beside_the_log_count(
    text: str, facts: dict[str, object], klass: str, table: Table
) -> None:
    """The exit status, the cgroup's kills, who asked to stop, disks and GPUs speak too."""
    assert said(text, table, **facts).klass == klass


def test_a_bare_137_forbids_nothing(table: Table) -> None:
    """SIGKILL alone may have come from anywhere."""
    assert said(STEPS, table, exit_code=137).retry is None


# --- what stands around lines --------------------------------------------------------------------


def _each(prefix: str) -> Callable[[str, random.Random], str]:
    return lambda text, _: "".join(prefix + line for line in text.splitlines(keepends=True))


def _two_ranks(text: str, dice: random.Random) -> str:
    """Two ranks that fail alike write in turns."""
    left = [[f"[rank{n}]: {line}" for line in text.splitlines(keepends=True)] for n in (0, 1)]
    out = []
    while any(left):
        out.append(dice.choice([side for side in left if side]).pop(0))
    return "".join(out)


AROUND: dict[str, Callable[[str, random.Random], str]] = {
    "rank": _each("[rank3]: "),
    "srun": _each("1: "),
    "ray": _each("(Worker pid=4711) "),
    "ray with address": _each("(train_fn pid=71, ip=10.0.0.7) "),
    "mpirun": _each("[1,3]<stderr>:"),
    "horovodrun": _each("[0]<stderr>: "),
    "torchrun": _each("[default0]:"),
    "pdsh": _each("worker-1: "),
    "pdsh with address": _each("10.0.0.7: "),
    "compose": _each("trainer-1  | "),
    "iso": _each("2024-05-01T10:00:00.123456Z "),
    "cri": _each("2024-05-01T10:00:00.123456789+00:00 stderr F "),
    "comma": _each("2024-05-01 10:00:00,123 "),
    "loguru": _each("2024-05-01 10:00:00.123 | ERROR    | a.b:f:12 - "),
    "bracket": _each("[2024-05-01 10:00:00] "),
    "both": _each("2024-05-01T10:00:00Z [rank0]: "),
    "colours": lambda text, _: text.replace("Error", "\033[1;31mError\033[0m"),
    "windows": lambda text, _: text.replace("\n", "\r\n"),
    "bar": lambda text, _: "\r 10%|#   | 1/10 [00:01<00:09,  1.0s/it]\r 20%|##  | 2/10 [00:02<00:08,  1.0s/it]" + text,
    "two ranks": _two_ranks,
}  # fmt: skip
_PLAIN = [
    (klass, text)
    for klass, _, text in FAILED
    # those whose consequences stand in prefixes of their own already
    if klass not in (UNKNOWN, "user_code_error") and "[rank" not in text
]


@pytest.mark.parametrize("around", AROUND)
def test_what_stands_around_lines_changes_nothing(around: str, table: Table) -> None:
    """Prefixes of ranks and workers, times, colours and progress bars leave the class as it is."""
    dice = random.Random(around)
    for klass, text in _PLAIN:
        if around == "two ranks" and len(text) > 2500:
            continue
        assert said(AROUND[around](text, dice), table).klass == klass, text


@pytest.mark.parametrize(
    "encoded",
    [
        lambda t: codecs.BOM_UTF16_LE + t.encode("utf-16-le"),
        lambda t: codecs.BOM_UTF16_BE + t.encode("utf-16-be"),
        lambda t: codecs.BOM_UTF8 + t.encode(),
        lambda t: "Größe\n".encode("latin-1") + t.encode(),
        lambda t: b"\xff\xfe\xfd\n" + t.encode(),
    ],
)
def test_an_encoding_changes_nothing(encoded: Callable[[str], bytes], table: Table) -> None:
    """UTF-16, byte order marks and what is no UTF-8 at all leave the class as it is."""
    for klass, text in _PLAIN:
        assert diagnose([Log(encoded(text))], table).klass == klass


@settings(max_examples=cases(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    case=st.sampled_from(_PLAIN),
    names=st.lists(
        st.sampled_from(["rank", "iso", "colours", "windows", "ray"]), max_size=3, unique=True
    ),
    before=st.integers(0, 3000),
)
def test_any_mixture_keeps_the_class(
    case: tuple[str, str], names: list[str], before: int, table: Table
) -> None:
    """Several of them at once, behind any number of healthy lines, wherever blocks are cut."""
    klass, text = case
    for name in names:
        text = AROUND[name](text, random.Random(0))
    healthy = "".join(f"[INFO] batch {n} of 3000 was read\n" for n in range(before))
    assert said(healthy + text, table).klass == klass


@settings(max_examples=cases(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=4000), code=st.one_of(st.none(), st.integers(0, 255)))
def test_no_bytes_make_it_fail(data: bytes, code: int | None, table: Table) -> None:
    """Whatever a job prints, there is a diagnosis."""
    found = diagnose([Log(data)], table, Circumstances(exit_code=code))
    assert found.klass in CLASSES
    assert 0 < found.confidence < 1


def test_a_flood_of_errors_has_the_class_of_one(table: Table) -> None:
    flood = "".join(
        f'Traceback (most recent call last):\n  File "a.py", line {n}, in f\nValueError: {n:x} {"ab" * (n % 50)}\n'
        for n in range(60_000)
    )
    # the limit of PID 1 is time on the clock, which a busy machine uses up
    found = diagnose([Log(flood.encode())], table, deadline_s=60)
    assert found.klass == "user_code_error"


def test_several_logs_name_the_one_that_tells_the_cause(table: Table) -> None:
    """Of the logs of several instances the evidence names the one with the cause."""
    found = diagnose(
        [Log(WATCHDOG.encode(), "worker-0"), Log((TRACE + _OOM).encode(), "worker-1")], table
    )
    assert (found.klass, found.evidence[0].file) == ("gpu_oom", "worker-1")


def test_the_end_of_a_container_has_it_in_three_lines(rules: Rules) -> None:
    """From the table that init left; without one there is nothing to say, and nothing fails."""
    assert parse_table(b"") is None
    assert parse_table(packed(b"[1]")) is None
    data = {**rules.data(), "exit_codes": {"gpu_oom": 20, "user_code_error": 21}}
    read = parse_table(packed(json.dumps(data).encode()))
    assert read is not None
    found = diagnose([Log((TRACE + _OOM).encode())], read, Circumstances(exit_code=1), 1.0)
    assert (len(diagnosis_lines(found)), exit_code_of(found, read)) == (3, 20)
    unsure = diagnose(
        [Log((TRACE + "lib.Strange: 1\n").encode())], read, Circumstances(exit_code=1), 1.0
    )
    assert (unsure.klass, exit_code_of(unsure, read)) == ("user_code_error", None)


@pytest.mark.parametrize(
    ("line", "headline", "advice"),
    [
        (
            "user.sh: line 4: pyton3: command not found",
            "the shell does not find the program 'pyton3'",
            "is the name a typo?",
        ),
        ("ls: cannot access '/data': No such file or directory", "missing: '/data'", ""),
        ("ls: cannot access \u2018/data\u2019: No such file or directory", "missing: '/data'", ""),
        ("bash: line 3: cd: /data: No such file or directory", "missing: '/data'", ""),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/data/x'", "missing: '/data/x'", ""),
        ("cat: words: No such file or directory", "is not where the job looks for it", ""),
        (
            "0  0 --:--:-- 0curl: (6) Could not resolve host: exmaple.invalid",
            "no address is found for the host 'exmaple.invalid'",
            "is the name a typo?",
        ),
        (
            "wget: unable to resolve host address \u2018exmaple.invalid\u2019",
            "no address is found for the host 'exmaple.invalid'",
            "is the name a typo?",
        ),
        (
            "curl: (7) Failed to connect to hub.example.com port 443: Connection refused",
            "a service outside the job could not be reached",
            "run it again",
        ),
    ],
)  # fmt: skip
def test_the_headline_names_what_is_missing(
    line: str, headline: str, advice: str, table: Table
) -> None:
    """A name in the log stands in the headline, and a wrong name may be a typo."""
    diagnosis = said(line, table, exit_code=1)
    assert headline in diagnosis.headline
    assert diagnosis.advice.startswith(advice)


@pytest.mark.parametrize(
    "line",
    [
        "INFO 01-01 00:00:00 runner.py:7] If you are running out of memory, use a smaller batch.",
        '   87 |     raise RuntimeError("CUDA out of memory")',
        "n1:45:45 [0] NCCL INFO NET/IB : No device found.",
    ],
)
def test_what_may_happen_has_not_happened(line: str, table: Table) -> None:
    """Advice, quoted source and what a logger calls information are no evidence."""
    assert said(f"{STEPS}{line}\n", table).klass == NONE


def test_an_exception_that_a_package_prints_while_it_goes_on_is_no_failure(table: Table) -> None:
    """No traceback, and a program that informs for long afterwards: it handled the exception."""
    went_on = "".join(
        f"INFO 01-01 00:00:{n:02} loader.py:7] part {n} is loaded\n" for n in range(20)
    )
    line = "AttributeError: 'Odd' object has no attribute 'get'\n"
    assert said(line + went_on, table).klass == NONE
    assert said(TRACE + line + went_on, table).klass == "user_code_error"


@pytest.mark.parametrize(
    ("file", "retry"),
    [("/job/train.py", "after_fix"), ("/usr/lib/python3/dist-packages/a.py", None)],
)
def test_only_an_exception_of_the_job_s_own_code_forbids_a_retry(
    file: str, retry: str | None, table: Table
) -> None:
    """One that a package raises may come of the node."""
    frame = f'Traceback (most recent call last):\n  File "{file}", line 4, in f\n    x\n'
    assert said(f"{frame}ValueError: needs 8 heads, 1 was found\n", table).retry == retry


def test_a_build_that_reaches_no_server_may_be_run_again(table: Table) -> None:
    """A build prints why it failed after the line that says so."""
    text = (
        "  error: subprocess-exited-with-error\n  x Building wheel for odd (setup.py) did not run\n"
        "      error: <urlopen error [Errno -2] Name or service not known>\n"
    )
    assert said(text, table).klass == "network_unreachable"


@pytest.mark.parametrize(
    ("file", "advice"),
    [
        ("/job/train.py", "correct /job/train.py, line 7"),
        (
            "/usr/lib/python3/dist-packages/lib/a.py",
            "correct your call that leads to lib/a.py",
        ),
        ("/sgl-workspace/sglang/python/sglang/srt/a.py", "correct your call that leads to "),
        ("/opt/venv/bin/accelerate", "correct your call that leads to "),
    ],
)
def test_the_advice_names_no_line_of_a_library(file: str, advice: str, table: Table) -> None:
    """A user corrects their own line; if all lines are a library's, the call that leads to it."""
    text = f'Traceback (most recent call last):\n  File "{file}", line 7, in f\nKeyError: 1\n'
    assert said(text, table).advice.startswith(advice)


def test_a_package_that_an_import_may_lack_is_no_failure(table: Table) -> None:
    """A package printed the traceback of an optional import, and the training went on."""
    frame = '  File "/usr/lib/python3/dist-packages/odd/__init__.py", line 5, in f\n    import x\n'
    trace = f"Traceback (most recent call last):\n{frame}ModuleNotFoundError: No module named 'x'\n"
    steps = "".join(f"step {n}: loss=0.3\n" for n in range(5))
    assert said(trace + steps, table).klass == NONE
    assert said(steps + trace, table).klass == "module_not_found"


def test_an_exception_at_the_interpreter_s_end_is_no_failure(table: Table) -> None:
    """Python itself says that nothing depends on it any more."""
    text = (
        "Exception in thread Thread-3 (most likely raised during interpreter shutdown):\n"
        "Traceback (most recent call last):\n"
        '  File "/usr/lib/python3/threading.py", line 932, in _bootstrap_inner\n'
        "AttributeError: 'NoneType' object has no attribute 'time'\n"
    )
    assert said(STEPS + text, table).klass == NONE


def test_a_retried_error_counts_once_a_failure_is_certain(table: Table) -> None:
    """The exit code says that the retries did not help; without it the log may go on."""
    text = "".join(
        f"Failed, retrying in 2s ({n}/3): toomanyrequests: You have reached your pull rate limit\n"
        for n in range(1, 3)
    )
    assert said(text, table, exit_code=1).klass == "service_quota"
    assert said(text, table).klass != "service_quota"


_NO_NVIDIA_SMI = "run.sh: line 1: nvidia-smi: command not found\n"


@pytest.mark.parametrize(
    ("end", "code", "klass"),
    [
        ("run.sh: line 9:    17 Killed                  python3 train.py\n", 137, "host_oom"),
        ("python3: can't open file '/job/train.py': [Errno 2] No such file or directory\n", 2,
         "file_not_found"),
        ("run.sh: line 9:    17 Segmentation fault      (core dumped) python3 train.py\n", 139,
         "segfault"),
        (TRACE + "RuntimeError: boom\n", 1, "user_code_error"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("between", ["", "starting\n", "starting\nreading data\nready\n"])
def test_a_later_error_outranks_a_command_that_the_shell_did_not_find(
    end: str, code: int, klass: str, between: str, table: Table
) -> None:
    """A script that goes on after `nvidia-smi || true` did not end because of it."""
    for known in (None, code):
        assert said(_NO_NVIDIA_SMI + between + end, table, exit_code=known).klass == klass


def test_a_collective_outranks_a_command_that_a_program_called(table: Table) -> None:
    """A shell that the program starts for a command does not end the program."""
    missing = "/bin/sh: gpustat: command not found\n"
    assert said(STEPS + missing + WATCHDOG, table).klass == "nccl_timeout"


@pytest.mark.parametrize(
    "line", ["bash: nvidia-smi: command not found", "run.sh: line 2: /etc/hosts: Permission denied"]
)
def test_a_shell_that_ran_the_next_commands_did_not_fail_at_the_first(
    line: str, table: Table
) -> None:
    """Without a later error nothing is wrong; a failed job may be run again as it is."""
    text = line + "\n" + "".join(f"stage {n} of 10\n" for n in range(1, 11))
    assert said(text, table).klass == NONE
    failed = said(text, table, exit_code=1)
    assert failed.retry is None
    assert failed.confidence < 0.6


@pytest.mark.parametrize(
    "after", ["", "srun: error: node1: task 0: Exited with exit code 127\n", "make: *** [train] Error 127\n"]
)  # fmt: skip
def test_a_missing_command_at_the_end_is_the_cause(after: str, table: Table) -> None:
    """What a launcher says of the exit code is no later error."""
    text = "starting\nrun.sh: line 3: train: command not found\n" + after
    for code in (None, 127):
        assert said(text, table, exit_code=code).klass == "command_not_found"


@pytest.mark.parametrize(
    ("facts", "klass"),
    [
        ({"exit_code": 1, "stopped": True, "interrupted": True}, "cancelled_by_user"),
        ({"exit_code": 143, "stopped": True, "interrupted": True}, "cancelled_by_user"),
        ({"exit_code": 1, "stopped": True}, "terminated_sigterm"),
        ({"exit_code": 143}, "terminated_sigterm"),
        ({"exit_code": 130}, "cancelled_by_user"),
        ({"exit_code": 127, "stopped": True}, "command_not_found"),
    ],
)
def test_a_stop_decides_over_a_command_that_a_shell_could_not_run(
    facts: dict[str, object], klass: str, table: Table
) -> None:
    """The shell continued after it; a trap's failed redirection is one that ends a stopped job."""
    for path in ("/nonexistent/dir/ck", "/nonexistent/dir/ck.new"):
        text = f"step 3\nbash: line 3: {path}: No such file or directory\n"
        assert said(text, table, **facts).klass == klass


def test_the_name_of_a_header_is_no_retry(table: Table) -> None:
    """A registry that refuses a pull says when to come again."""
    text = "toomanyrequests: retry-after: 91us, allowed: 100/minute\n"
    assert said(text, table).klass == "service_quota"


def test_an_option_that_a_shell_takes_for_a_command_is_no_missing_program(table: Table) -> None:
    """The line before lacks its backslash; what the program itself reports outweighs it."""
    option = "run.sh: line 9: --lr: command not found\n"
    assert said(option, table).klass == "shell_error"
    assert said("RuntimeError: CUDA out of memory.\n" + option, table).klass == "gpu_oom"


def test_an_error_level_line_is_no_output_of_a_shell_command(table: Table) -> None:
    """A server that logs an error continues to log."""
    error = "E0609 11:00:00.000001 7 models.cc:9] unable to find '/models/a/1/model.pt' for it\n"
    reports = "".join(f"I0609 11:00:0{n}.000001 7 server.cc:9] part {n}\n" for n in range(5))
    assert said(error + reports, table).klass == "file_not_found"


_KUBELET = (
    'E1123 10:00:00.000000    1234 pod_workers.go:1298] "Error syncing pod, skipping" err="failed to \\"StartContainer\\"'
    ' for \\"main\\" with ImagePullBackOff: \\"Back-off pulling image\\"" pod="ml/w-0"\n'
)
_HOROVOD = "RuntimeError: Horovod detected that one or more processes exited with non-zero status, thus causing the job to be terminated.\n"


@pytest.mark.parametrize(
    ("text", "klass", "line"),
    [
        (_HOROVOD, "child_failed", "Horovod detected"),
        (TRACE + _HOROVOD, "child_failed", "Horovod detected"),
        (_KUBELET, "image_missing", "ImagePullBackOff"),
        ("WARNING: NaN or Inf found\nGradient overflow. Skipping step, reducing loss scale to 1e-321\n", "loss_nan", "1e-321"),
        ("write error: wrote 39776036 blocks instead of 41251350\n", UNKNOWN, "wrote 39776036"),
    ],
)  # fmt: skip
def test_what_no_rule_decides_is_not_called_healthy(
    text: str, klass: str, line: str, table: Table
) -> None:
    """A log whose last complaint nothing follows is unknown at best, and shows that line."""
    found = said(f"hello\n{text}", table)
    assert (found.klass, line in found.evidence[0].text) == (klass, True)


@pytest.mark.parametrize(
    "text",
    [
        "ERROR: widget 7 is odd",
        "tool: error: widget 7 is odd",
        "  Fatal error: widget 7 is odd\nexit",
        "the widget has died",
    ],
)
def test_a_log_that_ends_with_a_line_of_an_error_has_failed(text: str, table: Table) -> None:
    """No rule knows the message, but the log does not end well."""
    assert said(f"started\n{text}\n", table).klass == "unknown"
    assert said(f"{text}\ntraining finished\n", table).klass == "none"


_XID = "NVRM: Xid (PCI:0000:3b:00): {}, pid=12, name=python\n"
_NO_NAME = "ssh: Could not resolve hostname w-1: Name or service not known\n"
_CAUGHT = (
    "RuntimeError: Caught FileNotFoundError in DataLoader worker process 0.\nOriginal "
    + TRACE
    + "FloatingPointError: underflow\n"
)


@pytest.mark.parametrize(
    ("text", "klass", "line"),
    [
        ("exec /usr/bin/python: exec format error\n", "illegal_instruction", "exec /usr"),
        ("OSError: /opt/libx.so: cannot open shared object file: Exec format error\n", "illegal_instruction", "OSError"),
        (_NO_NAME + "mpirun was unable to launch the specified application\n", "network_unreachable", "ssh"),
        (_XID.format(13) + _XID.format(109), "cuda_kernel_error", "): 13,"),
        (_XID.format(109), "gpu_lost", "): 109,"),
        ("".join(f"run {n} of 4\n{STEPS}{TRACE}{_OOM}run {n} failed\n" for n in (1, 2, 3, 4)) + "0 of 4 runs succeeded\n", "gpu_oom", _OOM.strip()),
        ("RuntimeError: MemoryError: Out of memory in step 7\n", "host_oom", "RuntimeError"),
        (TRACE + _CAUGHT, "loss_nan", "FloatingPointError"),
        ("ERROR: internal error, please report this\n" + TRACE + "ValueError: 7\n", "user_code_error", "ValueError"),
    ],
)  # fmt: skip
def test_the_specific_line_gives_the_class(text: str, klass: str, line: str, table: Table) -> None:
    """Neither a wrapper, nor a consequence, nor the type of an exception outweighs the message."""
    found = said(text, table)
    assert (found.klass, line in found.evidence[0].text) == (klass, True)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (137, "killed by SIGKILL; the sender is unknown, often the memory limit"),
        (134, "a guess from the exit code alone: "),
    ],
)
def test_an_exit_code_that_fits_several_classes_is_called_a_guess(
    code: int, words: str, table: Table
) -> None:
    """Nobody knows who sent a SIGKILL; a counted kill of the kernel is no guess."""
    assert said("hello\n", table, exit_code=code).headline.startswith(words)
    killed = said("hello\n", table, exit_code=137, oom_kills=1)
    assert killed.headline == CLASSES["host_oom"].meaning


@pytest.mark.parametrize(
    "text",
    [
        "no deadlock detected in 1000 schedules\n",
        "    except TimeoutError:\n        raise RuntimeError('the server did not answer')\n",
        "Note: when the quota is exceeded, writes fail.\n",
        "token expired, refreshed automatically\n",
        "connection refused (1/9)\nconnected\n",
        "could not read the power limit (permission denied), power will not be logged\n",
    ],
)
def test_words_of_failure_that_report_none(table: Table, text: str) -> None:
    """A negation, source code, advice, and what a program mended or does without are no failure."""
    assert said(text, table).is_clean

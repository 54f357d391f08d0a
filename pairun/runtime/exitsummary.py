"""The exit summary: after a failure, the container's exit code and the termination message.

A separate process with a deadline makes it, so that a slow expression, a hanging GPU driver or a
hanging disk cannot lose the user's exit code. PID 1 writes a short message first.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pairun.base.folder import open_regular
from pairun.base.foreignjson import parse_record
from pairun.base.gpureport import GpuReportElement, parse_gpu_report, uncorrectable_errors
from pairun.base.paths import (
    DIAGNOSIS_FILE,
    EXIT_SPEC_FILE,
    EXIT_SPEC_SCHEMA,
    log_dir,
    runtime_file,
)
from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.classes import CLASSES
from pairun.diagnose.diagnosis import Diagnosis, diagnosis_lines
from pairun.diagnose.lines import Log
from pairun.diagnose.table import Table, parse_table
from pairun.diagnose.weighing import diagnose, exit_code_of
from pairun.runtime.exitmatching import ExitEvidence, Match, match, text_of
from pairun.runtime.failedcommand import with_commands
from pairun.runtime.termination import (
    PLATFORM_LINES,
    USER_LINES,
    Summary,
    budget_of,
    excerpt,
    message,
)
from pairun.secrets.vault import Vault
from pairun.volume.door import Door
from pairun.volume.stopnote import read_stop_note

MAX_LOG_BYTES = 10 * 1024 * 1024
"""How many bytes at the end of each log are read."""

SHORT_BYTES = 16 * 1024
"""If the current file is shorter than this, the end of the rotated one is also read."""

_SKIPPED = re.compile(
    rb"^\[[^]\n]*\] \[openpai-runtime\] skipped  .*\n(?:\[[^]\n]*\] \[openpai-runtime\]  {9}.*\n)?",
    re.MULTILINE,
)
"""The lines that `pairun.report.console` prints for a skipped task."""

DIAGNOSIS_S = 1.0
"""The limit of the diagnosis, in seconds."""

NO_SPEC: Mapping[str, Any] = {"specs": []}

GPU_S = 1.0
"""The limit of ``nvidia-smi``, in seconds."""

MAX_GPU_REPORT_BYTES = 4 * 1024 * 1024
"""The largest report that is read; a report on 16 GPUs has about 0.5 MB."""


def summarise(
    matched: Match, evidence: ExitEvidence, diagnosis: Diagnosis | None = None
) -> Summary:
    """Collect the contents of the termination message.

    Args:
        diagnosis: why the command died; None if there are no rules.
    """
    user, platform = text_of(evidence.user_log), text_of(evidence.platform_log)
    diagnosis_data: dict[str, Any] | None = None
    if diagnosis is not None:
        first = diagnosis.evidence[0].text if diagnosis.evidence else ""
        diagnosis_data = {**diagnosis.data(), "evidence": first}
    return Summary(
        exit_code=matched.code,
        user_exit_code=evidence.exit_code,
        matched_user=_cut(user, matched.user),
        matched_platform=_cut(platform, matched.platform),
        double_ecc=evidence.double_ecc if matched.gpu else None,
        user_log=excerpt(user, USER_LINES, matched.user),
        platform_log=excerpt(platform, PLATFORM_LINES, matched.platform),
        diagnosis=diagnosis_data,
    )


def _cut(text: str, span: tuple[int, int] | None) -> str | None:
    return None if span is None else text[slice(*span)]


def read_log(door: Door, folder: str) -> bytes:
    """Read the end of a rotated log, with the file before the current one if that is short."""
    current = read_end(door, os.path.join(folder, "current"), MAX_LOG_BYTES)
    if len(current) >= SHORT_BYTES:
        return current
    with contextlib.suppress(OSError):
        rotated = [n for n in door.names(folder) if re.fullmatch(r"@[0-9a-f]{24}\.s", n)]
        if rotated:
            return read_end(door, os.path.join(folder, rotated[-1]), SHORT_BYTES) + current
    return current


def read_end(door: Door, path: str, size: int) -> bytes:
    """The last bytes of a file on the volume; empty if it cannot be read."""
    try:
        return door.read_end(path, size)
    except OSError:
        return b""


def gpu_report(env: Mapping[str, str]) -> GpuReportElement | None:
    """The report of ``nvidia-smi``; None if the program is missing, fails or takes too long."""
    try:
        output = subprocess.run(
            ["nvidia-smi", "-q", "-x"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GPU_S,
            check=True,
            env=dict(env),
        ).stdout
        return parse_gpu_report(output[:MAX_GPU_REPORT_BYTES].decode("utf-8", "replace"))
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


class SummaryInput(NamedTuple):
    """The input of the summary's process.

    Attributes:
        failed_code: the exit code of the failed part: the user's command, or a task before it.
        own_code: the container's exit code without an exit spec.
        unmatched_code: the same if no entry of the exit spec matches.
        of_command: whether the user's command failed: only its failure is diagnosed.
        facts: fields of `pairun.diagnose.circumstances.Circumstances`.
        secrets: the texts to mask.
        script: path of the script that failed; empty if something else failed.
    """

    volume: str
    failed_code: int
    own_code: int
    unmatched_code: int
    of_command: bool
    facts: Mapping[str, Any]
    secrets: Sequence[str] = ()
    script: str = ""


class SummaryOutput(NamedTuple):
    """The output of the summary's process.

    Attributes:
        stopped: expressions that exceeded the time limit.
        diagnosis: in the form of ``pairun diagnose --json``; None without rules.
        diagnosis_lines: the diagnosis in a few lines for people.
        code_file: the rules file that gives the class this exit code; empty if none does.
    """

    exit_code: int
    message: str
    stopped: Sequence[str]
    diagnosis: Mapping[str, Any] | None = None
    diagnosis_lines: Sequence[str] = ()
    code_file: str = ""


def answer_to(
    question: SummaryInput,
    env: Mapping[str, str],
    vault: Vault,
    first_failure: Callable[[Diagnosis], str | None] = lambda _: None,
    with_history: Callable[[Diagnosis, Door, str, bytes], Diagnosis] = lambda diagnosis, *_: (
        diagnosis
    ),
) -> SummaryOutput:
    """Make the summary; slow if a log is long or a GPU driver hangs.

    Args:
        first_failure: describes the instance that failed first; None if it is unknown or this
            instance.
        with_history: considers the Pod's earlier attempts; called with the diagnosis, the door, the
            Pod's log directory and the end of the command's output.
    """
    door = Door(question.volume)
    vault.add(question.secrets)
    log_folder = log_dir(door.root, env)
    spec, table = _read_spec(door), _read_table(door) if question.of_command else None
    patterns = (pattern for entry in spec["specs"] for pattern in entry["patterns"])
    needs_gpus = table is not None or any("gpuInfo" in pattern for pattern in patterns)
    report = gpu_report(env) if needs_gpus else None
    gpus = report.all("gpu") if report is not None else None
    evidence = ExitEvidence(
        question.failed_code,
        read_log(door, os.path.join(log_folder, "user-all")),
        # Without the lines of skipped tasks: the message has room for few lines.
        _SKIPPED.sub(b"", read_end(door, os.path.join(log_folder, "runtime.log"), MAX_LOG_BYTES)),
        double_ecc=any(uncorrectable_errors(gpu, "volatile") for gpu in gpus or ()),
    )
    # An unreadable spec overrides no exit code.
    unmatched = question.own_code if spec is NO_SPEC else question.unmatched_code
    diagnosis, code, code_file, lines = None, None, "", []
    if table is not None:
        facts = _facts(question, evidence, env, None if gpus is None else len(gpus))
        log = evidence.user_log or evidence.platform_log
        diagnosis = diagnose([Log(log, "log")], table, facts, DIAGNOSIS_S)
        diagnosis = with_commands(diagnosis, door, question.script, question.failed_code, vault)
        diagnosis = _masked(diagnosis, vault)
        code = exit_code_of(diagnosis, table)
        code_file = table.code_files.get(diagnosis.klass, "")
        diagnosis = with_reason(diagnosis, door, first_failure)
        diagnosis = with_history(diagnosis, door, log_folder, evidence.user_log)
        diagnosis = _masked(diagnosis, vault)
        lines = diagnosis_lines(diagnosis)
    matched = match(spec, evidence, unmatched if code is None else code)
    text = message(summarise(matched, evidence, diagnosis), budget_of(env), vault.text)
    data = diagnosis.data() if diagnosis else None
    is_own = code is not None and matched.code == code
    file = code_file if is_own else ""
    return SummaryOutput(matched.code, text, list(matched.stopped), data, lines, file)


def _masked(diagnosis: Diagnosis, vault: Vault) -> Diagnosis:
    """Mask secrets again: in the log colours may split one, and the error file is unmasked."""
    evidence = (each._replace(text=vault.text(each.text)) for each in diagnosis.evidence)
    return diagnosis._replace(
        headline=vault.text(diagnosis.headline),
        advice=vault.text(diagnosis.advice),
        evidence=tuple(evidence),
        details=vault.record(diagnosis.details),
    )


def _facts(
    question: SummaryInput, evidence: ExitEvidence, env: Mapping[str, str], gpus_seen: int | None
) -> Circumstances:
    """Add the container's state at its end to the facts that PID 1 knows."""
    return Circumstances(**question.facts)._replace(
        exit_code=question.failed_code,
        double_ecc=evidence.double_ecc,
        error_file=_error_file(env),
        disk_free=_free(env.get("PAI_WORK_DIR") or "/"),
        shm_free=_free("/dev/shm"),
        gpus_asked=_gpus_asked(env),
        gpus_seen=gpus_seen,
    )


def _gpus_asked(env: Mapping[str, str]) -> int | None:
    """The number of GPUs that the job requests: the first number in OpenPAI's variable."""
    role = env.get("PAI_CURRENT_TASK_ROLE_NAME", "")
    first = env.get(f"PAI_RESOURCE_{role}", "").partition(",")[0]
    return int(first) if first.isdecimal() else None


def _error_file(env: Mapping[str, str]) -> str | None:
    """The first worker's error in torchelastic's file (PyTorch docs, "Error Propagation")."""
    path = env.get("TORCHELASTIC_ERROR_FILE")
    return text_of(_end_of(path, SHORT_BYTES)) or None if path else None


def _free(path: str) -> int | None:
    """The free bytes in a path's file system for users except root; None if unlimited."""
    try:
        status = os.statvfs(path)
    except OSError:
        return None
    # A file system without a block count has no limit.
    return status.f_bavail * status.f_frsize if status.f_blocks else None


def _read_table(door: Door) -> Table | None:
    """The rules that init wrote; None if there are none."""
    try:
        return parse_table(door.read(runtime_file(door.root, DIAGNOSIS_FILE)))
    except OSError:
        return None


def _end_of(path: str, size: int) -> bytes:
    """The last bytes of a file outside the volume; empty if it cannot be read."""
    with contextlib.suppress(OSError), os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - size))
        return file.read(size)
    return b""


def _read_spec(door: Door) -> Mapping[str, Any]:
    """The cluster's exit spec; empty if there is no usable one."""
    try:
        spec = parse_record(door.read(runtime_file(door.root, EXIT_SPEC_FILE)))
    except OSError:
        return NO_SPEC
    return spec if spec is not None and spec.get("schema") == EXIT_SPEC_SCHEMA else NO_SPEC


_STOPPED = "terminated_sigterm"
_BY_A_PERSON = "cancelled_by_user"


def with_reason(
    diagnosis: Diagnosis, door: Door, first_failure: Callable[[Diagnosis], str | None]
) -> Diagnosis:
    """An instance's diagnosis; if it was stopped, with the reason for the stop.

    In the container every stop is a SIGTERM from outside. `pairun run` writes a note to the volume
    before it sends one; in a cluster the job's rendezvous knows which instance failed first.

    Args:
        first_failure: describes the instance that failed first; None if it is unknown or this
            instance. Always called, because it also reports this instance's failure.
    """
    other = first_failure(diagnosis)
    if diagnosis.klass != _STOPPED:
        if other is None or not diagnosis.is_consequence:
            return diagnosis
        return diagnosis._replace(headline=f"{diagnosis.headline}; {other}")
    note = read_stop_note(door)
    if note is not None and note.by_person:
        kind = CLASSES[_BY_A_PERSON]
        return diagnosis._replace(
            klass=_BY_A_PERSON, fault=kind.fault, retry=kind.retry, confidence=1.0,
            headline=note.words, advice=kind.advice, evidence=(),
        )  # fmt: skip
    if other is not None:
        advice = "look for the cause in that instance's log"
        headline = f"stopped because {other}"
    elif note is not None:
        advice, headline = "", note.words
    else:
        return diagnosis
    return diagnosis._replace(fault="unknown", headline=headline, advice=advice)

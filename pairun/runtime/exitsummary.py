"""The exit summary: after a failure, the container's exit code and the termination message.

It is worked out by a process of its own with a deadline, so nothing in it (an expression that runs
away, a GPU's driver that hangs, a disk that does not answer) can cost the user's exit code. The
short form, which needs none of this, is written first.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pairun.base.gpureport import GpuReportElement, parse_gpu_report, uncorrectable_errors
from pairun.diagnose.brief import exit_code_of, in_words, parse_table
from pairun.diagnose.brief import why as diagnosed
from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.table import Table
from pairun.diagnose.weighing import Diagnosis
from pairun.handover.door import Door
from pairun.handover.opening import open_regular
from pairun.runtime.exitmatching import SCHEMA_VERSION, Evidence, Match, match, text_of
from pairun.runtime.termination import (
    DEFAULT_BUDGET,
    PLATFORM_LINES,
    USER_LINES,
    Summary,
    excerpt,
    message,
)
from pairun.secrets.vault import Vault

MAX_LOG_BYTES = 10 * 1024 * 1024
"""How much of each log is looked at, from its end."""

MANY_BYTES = 16 * 1024
"""With less than this in the current file, the end of the rotated one is looked at too."""

VARIABLE = "PAIRUN_TERMINATION_LOG"
BUDGET_VARIABLE = "PAIRUN_TERMINATION_BYTES"
MIN_BUDGET = 256
OPENPAI_MESSAGE = "/tmp/pai-termination-log"
KUBERNETES_MESSAGE = "/dev/termination-log"

_SKIPPED = re.compile(
    rb"^\[[^]\n]*\] \[openpai-runtime\] skipped  .*\n(?:\[[^]\n]*\] \[openpai-runtime\]  {9}.*\n)?",
    re.MULTILINE,
)
"""What `pairun.report.console` prints of a task that is skipped: a line, and why."""

DIAGNOSIS_S = 1.0
"""How long the search for the cause may take."""

NO_SPEC: Mapping[str, Any] = {"specs": []}

GPU_S = 1.0
"""How long ``nvidia-smi`` may take."""

MAX_GPU_REPORT_BYTES = 4 * 1024 * 1024
"""The largest report that is read; one of 16 GPUs has about 0.5 MB."""


def summarise(found: Match, evidence: Evidence, why: Diagnosis | None = None) -> Summary:
    """What to say of a failure.

    Args:
        found: what the exit spec says.
        evidence: the failure.
        why: why it died, where there are rules.
    """
    user, platform = text_of(evidence.user_log), text_of(evidence.platform_log)
    return Summary(
        exit_code=found.code,
        user_exit_code=evidence.exit_code,
        matched_user=_cut(user, found.user),
        matched_platform=_cut(platform, found.platform),
        double_ecc=evidence.double_ecc if found.gpu else None,
        user_log=excerpt(user, USER_LINES, found.user),
        platform_log=excerpt(platform, PLATFORM_LINES, found.platform),
        diagnosis=None
        if why is None
        else {**why.data(), "evidence": why.evidence[0].text if why.evidence else ""},
    )


def _cut(text: str, span: tuple[int, int] | None) -> str | None:
    return None if span is None else text[slice(*span)]


def read_log(door: Door, folder: str) -> bytes:
    """The end of a rotated log: its current file, and of the one before it when that is short."""
    current = read_end(door, os.path.join(folder, "current"), MAX_LOG_BYTES)
    if len(current) >= MANY_BYTES:
        return current
    with contextlib.suppress(OSError):
        rotated = [n for n in door.names(folder) if re.fullmatch(r"@[0-9a-f]{24}\.s", n)]
        if rotated:
            return read_end(door, os.path.join(folder, rotated[-1]), MANY_BYTES) + current
    return current


def _without_skipped(log: bytes) -> bytes:
    """The platform's log without the lines of skipped tasks: the message shows a few lines only."""
    return _SKIPPED.sub(b"", log)


def read_end(door: Door, path: str, size: int) -> bytes:
    """The last bytes of a file on the volume; none where it cannot be read."""
    try:
        return door.read_end(path, size)
    except OSError:
        return b""


def gpu_report(env: Mapping[str, str]) -> GpuReportElement | None:
    """The report of ``nvidia-smi``; None where it is missing, fails or does not answer in time.

    Args:
        env: its ``PATH`` is where the program is looked for.
    """
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


class Question(NamedTuple):
    """What the process that works the summary out must know.

    Attributes:
        volume: the shared volume.
        user_code: the exit code of what failed: the user's command, or a task before it.
        own_code: the container's exit code where there is no exit spec.
        unmatched_code: the same where no entry of the exit spec matches.
        spec_file: what init left of the cluster's exit spec; it may be missing.
        log_folder: where the logs of this container are.
        budget: the largest termination message in bytes.
        diagnosis_file: what init left of the rules that say why it died; it may be missing.
        facts: what is known beside the logs, as `pairun.diagnose.circumstances.Circumstances` has it.
        secrets: the texts that the summary must not hold.
    """

    volume: str
    user_code: int
    own_code: int
    unmatched_code: int
    spec_file: str
    log_folder: str
    budget: int
    diagnosis_file: str
    facts: Mapping[str, Any]
    secrets: Sequence[str] = ()


class Answer(NamedTuple):
    """The summary.

    Attributes:
        exit_code: the container's.
        message: the termination message.
        stopped: expressions that ran away.
        diagnosis: why it died, as ``pairun diagnose --json`` has it; None where there are no rules.
        told: the same in a few lines for people.
    """

    exit_code: int
    message: str
    stopped: list[str]
    diagnosis: Mapping[str, Any] | None = None
    told: Sequence[str] = ()


def work_out(
    question: Question,
    env: Mapping[str, str],
    vault: Vault,
    first: Callable[[Diagnosis], str | None] = lambda _: None,
) -> Answer:
    """The whole summary; slow where a log is long or a GPU's driver does not answer.

    Args:
        question: what failed.
        env: the environment of the container.
        vault: takes the secrets of the question.
        first: asks the other instances who of the job failed first; None where nobody knows, or
            where it was this one.
    """
    door = Door(question.volume)
    vault.add(question.secrets)
    spec, table = _read_spec(door, question.spec_file), _read_table(door, question.diagnosis_file)
    report = gpu_report(env) if table is not None or _asks_for_gpu(spec) else None
    gpus = report.all("gpu") if report is not None else None
    evidence = Evidence(
        question.user_code,
        read_log(door, os.path.join(question.log_folder, "user-all")),
        _without_skipped(
            read_end(door, os.path.join(question.log_folder, "runtime.log"), MAX_LOG_BYTES)
        ),
        double_ecc=any(uncorrectable_errors(gpu, "volatile") for gpu in gpus or ()),
    )
    # A spec that cannot be read replaces no code.
    unmatched = question.own_code if spec is NO_SPEC else question.unmatched_code
    why, code, told = None, None, []
    if table is not None:
        facts = _facts(question, evidence, env, None if gpus is None else len(gpus))
        log = evidence.user_log or evidence.platform_log
        why = _masked(diagnosed(table, log, facts, DIAGNOSIS_S), vault)
        code, told = exit_code_of(why, table), in_words(why)
        if (other := first(why)) is not None:
            told.append(f"  {other}")
    found = match(spec, evidence, unmatched if code is None else code)
    text = message(summarise(found, evidence, why), question.budget, vault.text)
    return Answer(found.code, text, list(found.stopped), why.data() if why else None, told)


def _masked(why: Diagnosis, vault: Vault) -> Diagnosis:
    """A diagnosis without secrets: colours may have split one in the log, a file may hold one."""
    return why._replace(
        headline=vault.text(why.headline),
        advice=vault.text(why.advice),
        evidence=tuple(each._replace(text=vault.text(each.text)) for each in why.evidence),
        details=vault.record(why.details),
    )


def _facts(
    question: Question, evidence: Evidence, env: Mapping[str, str], gpus_seen: int | None
) -> Circumstances:
    """What is known beside the logs, and what the container shows at its end."""
    return Circumstances(**question.facts)._replace(
        exit_code=question.user_code,
        double_ecc=evidence.double_ecc,
        error_file=_error_file(env),
        disk_free=_free(env.get("PAI_WORK_DIR") or "/"),
        shm_free=_free("/dev/shm"),
        gpus_asked=_gpus_asked(env),
        gpus_seen=gpus_seen,
    )


def _gpus_asked(env: Mapping[str, str]) -> int | None:
    """How many GPUs the job asks for, as OpenPAI tells it: the first number of the role's resources."""
    role = env.get("PAI_CURRENT_TASK_ROLE_NAME", "")
    first = env.get(f"PAI_RESOURCE_{role}", "").partition(",")[0]
    return int(first) if first.isdecimal() else None


def _error_file(env: Mapping[str, str]) -> str | None:
    """What torchelastic kept of the first worker's error (PyTorch documentation, "Error Propagation")."""
    path = env.get("TORCHELASTIC_ERROR_FILE")
    return text_of(_end_of(path, MANY_BYTES)) or None if path else None


def _free(path: str) -> int | None:
    """The bytes that are free where a path leads, for whoever is not root."""
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    # A file system that counts nothing has no limit.
    return found.f_bavail * found.f_frsize if found.f_blocks else None


def short_message(exit_code: int, user_code: int, budget: int) -> str:
    """The message that is written before anything is worked out."""
    return message(Summary(exit_code=exit_code, user_exit_code=user_code), budget)


def write_message(door: Door, paths: Iterable[str], text: str) -> list[str]:
    """Write a termination message: anew on the volume, in place elsewhere, where it may be a mount.

    Returns:
        Why it could not be written, for each path where it could not.
    """
    failed = []
    for path in paths:
        try:
            if path in door:
                door.write(path, text.encode())
            else:
                _write_in_place(path, text.encode())
        except OSError as e:
            failed.append(f"the termination message cannot be written to {path}: {e.strerror}")
    return failed


def _write_in_place(path: str, data: bytes) -> None:
    fd = open_regular(path, os.O_WRONLY | os.O_CREAT)
    try:
        os.ftruncate(fd, 0)
        os.write(fd, data)
    finally:
        os.close(fd)


def message_paths(env: Mapping[str, str], log_folder: str) -> list[str]:
    """Where the termination message goes: where the platform reads it, and beside the logs.

    Args:
        env: ``PAIRUN_TERMINATION_LOG`` names the file, none when empty; else the one that is
            mounted counts, and OpenPAI's where there is a Framework.
        log_folder: where the logs of this container are.
    """
    beside = os.path.join(log_folder, os.path.basename(OPENPAI_MESSAGE))
    if (given := env.get(VARIABLE)) is not None:
        return [given, beside] if given else [beside]
    mounted = next((p for p in (OPENPAI_MESSAGE, KUBERNETES_MESSAGE) if os.path.exists(p)), None)
    if mounted is None and env.get("FC_FRAMEWORK_NAME"):
        mounted = OPENPAI_MESSAGE
    return [mounted, beside] if mounted else [beside]


def budget_of(env: Mapping[str, str]) -> int:
    """The largest termination message in bytes: ``PAIRUN_TERMINATION_BYTES``, 256 to 4096."""
    text = env.get(BUDGET_VARIABLE, "")
    return min(max(int(text), MIN_BUDGET), DEFAULT_BUDGET) if text.isdecimal() else DEFAULT_BUDGET


def _asks_for_gpu(spec: Mapping[str, Any]) -> bool:
    return any("gpuInfo" in pattern for entry in spec["specs"] for pattern in entry["patterns"])


def _read_table(door: Door, path: str) -> Table | None:
    """The rules that init left, or None where it left none, or where nobody asks."""
    try:
        return parse_table(door.read(path)) if path else None
    except OSError:
        return None


def _end_of(path: str, size: int) -> bytes:
    """The last bytes of a file outside the volume; none where it cannot be read."""
    with contextlib.suppress(OSError), os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - size))
        return file.read(size)
    return b""


def _read_spec(door: Door, path: str) -> Mapping[str, Any]:
    """The cluster's exit spec that init left; an empty one where there is none that can be used."""
    try:
        spec = json.loads(door.read(path))
    except (OSError, ValueError, RecursionError):
        return NO_SPEC
    usable = isinstance(spec, dict) and spec.get("schema") == SCHEMA_VERSION
    return spec if usable else NO_SPEC

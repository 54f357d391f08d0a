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
from collections.abc import Mapping
from typing import Any

from pairun.runtime.exitspec import NO_MATCH, Evidence, Match, match, text_of
from pairun.runtime.termination import (
    DEFAULT_BUDGET,
    PLATFORM_LINES,
    USER_LINES,
    Summary,
    excerpt,
    message,
)

MAX_LOG_BYTES = 10 * 1024 * 1024
"""How much of each log is looked at, from its end."""

MANY_BYTES = 16 * 1024
"""With less than this in the current file, the end of the rotated one is looked at too."""

GPU_S = 1.0
"""How long ``nvidia-smi`` may take."""


def summarise(found: Match, evidence: Evidence) -> Summary:
    """What to say of a failure.

    Args:
        found: what the exit spec says.
        evidence: the failure.
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
    )


def _cut(text: str, span: tuple[int, int] | None) -> str | None:
    return None if span is None else text[slice(*span)]


def read_log(folder: str) -> bytes:
    """The end of a rotated log: its current file, and of the one before it when that is short."""
    current = read_end(os.path.join(folder, "current"), MAX_LOG_BYTES)
    if len(current) >= MANY_BYTES:
        return current
    with contextlib.suppress(OSError):
        rotated = sorted(n for n in os.listdir(folder) if re.fullmatch(r"@[0-9a-f]{24}\.s", n))
        if rotated:
            return read_end(os.path.join(folder, rotated[-1]), MANY_BYTES) + current
    return current


def read_end(path: str, size: int) -> bytes:
    """The last bytes of a file; none where it cannot be read."""
    try:
        with open(path, "rb") as f:
            f.seek(max(0, os.fstat(f.fileno()).st_size - size))
            return f.read(size)
    except OSError:
        return b""


def double_ecc_error(env: Mapping[str, str]) -> bool:
    """Whether ``nvidia-smi`` tells of a memory error that no GPU could correct.

    A driver that does not answer in time tells of none. Drivers before 450 count
    ``double_bit/total``, later ones ``*_uncorrectable``.

    Args:
        env: where its ``PATH`` leads to the program.
    """
    try:
        asked = subprocess.run(
            ["nvidia-smi", "-q", "-x"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GPU_S,
            check=False,
            env=dict(env),
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return double_ecc_in(asked.stdout) if asked.returncode == 0 else False


def double_ecc_in(report: bytes) -> bool:
    """Whether a report of ``nvidia-smi -q -x`` counts an uncorrectable error since the last boot."""
    for counts in re.findall(rb"<volatile>(.*?)</volatile>", report, re.DOTALL):
        old = re.findall(rb"<double_bit>.*?<total>\s*(\d+)\s*</total>", counts, re.DOTALL)
        new = re.findall(rb"<[a-z]+_uncorrectable(?:_[a-z]+)?>\s*(\d+)\s*<", counts)
        if any(int(n) > 0 for n in (*old, *new)):
            return True
    return False


def work_out(
    spec: Mapping[str, Any] | None,
    exit_code: int,
    log_folder: str,
    env: Mapping[str, str],
    budget: int = DEFAULT_BUDGET,
) -> dict[str, Any]:
    """The whole summary, in a process of its own.

    Args:
        spec: what init left of the cluster's exit spec, or None without one.
        exit_code: the user's command's own.
        log_folder: where the logs of this container are.
        env: the environment of the container.
        budget: the largest termination message in bytes.

    Returns:
        ``exit_code``, the ``message``, and the expressions that were ``stopped``.
    """
    evidence = Evidence(
        exit_code,
        read_log(os.path.join(log_folder, "user-all")),
        read_end(os.path.join(log_folder, "runtime.log"), MAX_LOG_BYTES),
        double_ecc=_asks_for_gpu(spec) and double_ecc_error(env),
    )
    if spec is None:
        found = Match(exit_code or NO_MATCH, None, None, gpu=False, stopped=())
    else:
        found = match(spec, evidence)
    return {
        "exit_code": found.code,
        "message": message(summarise(found, evidence), budget),
        "stopped": list(found.stopped),
    }


def _asks_for_gpu(spec: Mapping[str, Any] | None) -> bool:
    return spec is not None and any(
        "gpuInfo" in pattern for entry in spec["specs"] for pattern in entry["patterns"]
    )


def read_spec(path: str) -> Mapping[str, Any] | None:
    """The cluster's exit spec that init left, or None where there is none that can be used."""
    try:
        with open(path, "rb") as f:
            spec = json.load(f)
    except (OSError, ValueError):
        return None
    return spec if isinstance(spec, dict) and spec.get("schema") == 1 else None

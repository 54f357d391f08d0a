"""The facts about a failure besides its log: exit code, signals, memory, GPUs."""

from __future__ import annotations

from typing import NamedTuple

from pairun.diagnose.signals import Signal


class Circumstances(NamedTuple):
    """The facts about a process besides its log; None for unknown.

    Attributes:
        exit_code: as a shell reports it: 128 plus the number for a signal.
        oom_kills: number of the container's processes that the kernel killed for lack of memory.
        stopped: whether the container was asked to stop before the process ended.
        interrupted: whether it was asked with SIGINT, as Ctrl-C sends.
        error_file: the text of torchelastic's error file.
        disk_free: free bytes where the job writes.
        shm_free: free bytes in /dev/shm.
        double_ecc: whether a GPU reports an uncorrectable memory error.
        gpus_asked: number of GPUs that the job requests.
        gpus_seen: number of GPUs that the driver reports at the end.
    """

    exit_code: int | None = None
    oom_kills: int | None = None
    stopped: bool = False
    interrupted: bool = False
    error_file: str | None = None
    disk_free: int | None = None
    shm_free: int | None = None
    double_ecc: bool = False
    gpus_asked: int | None = None
    gpus_seen: int | None = None


def clues(facts: Circumstances) -> list[Signal]:
    """The facts that the circumstances report."""
    out = []
    if facts.oom_kills:
        count = facts.oom_kills
        words = f"the kernel killed {count} process{'es' * (count > 1)} for memory"
        out.append(_fact("host_oom", 88, words))
    if facts.stopped and facts.exit_code != 0:
        words = "the container was asked to stop before it ended"
        if facts.interrupted:
            out.append(_fact("cancelled_by_user", 82, f"{words}, with SIGINT (Ctrl-C)"))
        else:
            out.append(_fact("terminated_sigterm", 82, words))
    if facts.double_ecc:
        words = "the driver counts a memory error that none can correct"
        out.append(_fact("gpu_ecc_error", 92, words))
    if facts.disk_free is not None and facts.disk_free < 1 << 20:
        out.append(_fact("disk_full", 70, f"{facts.disk_free} bytes are free on the disk"))
    if facts.shm_free is not None and facts.shm_free < 1 << 20 and facts.exit_code:
        out.append(_fact("shm_too_small", 60, f"{facts.shm_free} bytes are free in /dev/shm"))
    if facts.gpus_asked and facts.gpus_seen is not None and facts.gpus_seen < facts.gpus_asked:
        words = f"{facts.gpus_seen} of {facts.gpus_asked} GPUs are seen at the end"
        out.append(_fact("gpu_lost" if facts.gpus_seen else "gpu_not_available", 80, words))
    return out


def _fact(klass: str, weight: int, words: str) -> Signal:
    return Signal(klass, weight, words, "container")

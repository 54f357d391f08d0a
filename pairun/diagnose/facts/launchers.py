"""Facts from launchers: a process that they started ended with an exit code.

The exit code is an effect. Each fact weighs so little that the log's cause outranks it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pairun.diagnose.facts.fact import HINT, LIKELY, Fact, Reader
from pairun.diagnose.lines import Line, Log

_ENDED = re.compile(
    r"\bfailed \(exitcode: (?P<torchrun>-?\d+)\) local_rank: \d+"
    r"|^ +exitcode +: (?P<summary>-?\d+) +\(pid: \d+\)"
    r"|\bexits with return code = (?P<deepspeed>-?\d+)"
    r"|\b[Rr]ank \d+ (?:crashed|exited|failed|died) with (?:exit )?code:? (?P<rank>-?\d+)"
    r"|: tasks? [\d,-]+: Exited with exit code (?P<srun>\d+)"
    r"|\b[Pp]rocess \S{1,40} (?:terminated|exited|failed) with (?:exit )?code:? (?P<process>-?\d+)"
    r"|\breturned non-zero exit status (?P<called>\d+)"
    r"|\bcontainer \S{1,80} exited \((?P<compose>\d+)\)|^\S{1,80} exited with code (?P<service>\d+)\s*$"
    r"|\bMain process exited, code=exited, status=(?P<systemd>\d+)/"
    r"|\bexited: \S{1,80} \(exit status (?P<supervisor>\d+); not expected\)"
    r"|\bentrypoint command failed with exit code (?P<ray>\d+)"
    r"|\bwith errorcode (?P<openmpi>-?\d+)\.?\s*$|\bMPI_Abort\(\w+, (?P<mpich>-?\d+)\)"
    r"|\bPrimary job  ?terminated normally, but (?P<words>\d) process(?:es)? returned"
    r"|\bexit(?:ed)? with (?:exit )?(?:status|code):? (?P<plain>[1-9]\d{0,2})\b[^\w]*$"
)
_WITHOUT_CODE = re.compile(
    r"\bthe trainer process with rank=\[[\d, ]+\] was aborted"
    r"|has failed because \d+ \w+ replica\(s\) failed|\bis failed because \d+ \w+ replica\(s\) failed"
    r"|\[launch\.py:\d+:sigkill_handler\] Killing subprocess|^\S+ FAILED\s*$"
    r"|\bprocess exited with an unknown status"
)
_SIGNALS: Mapping[int, tuple[str, int]] = {
    4: ("illegal_instruction", LIKELY + 3),
    6: ("native_abort", LIKELY - 5),
    7: ("shm_too_small", HINT + 3),
    8: ("native_abort", LIKELY - 5),
    9: ("host_oom", LIKELY + 2),
    11: ("segfault", LIKELY + 3),
}
"""The meaning of the signal that ended a process."""

_CONSEQUENCES = (2, 15)
"""The signals with which launchers end the other processes."""


def _read(line: Line, _log: Log) -> Sequence[Fact] | None:
    if match := _ENDED.search(line.text):
        code = int(next(value for value in match.groups() if value is not None))
        return _of_code(code, line)
    if _WITHOUT_CODE.search(line.text):
        return [_fact("child_failed", HINT - 1, "a process of the job failed", line)]
    return None


def _of_code(code: int, line: Line) -> Sequence[Fact] | None:
    signal = -code if code < 0 else code - 128
    if code == 0 or signal in _CONSEQUENCES:
        return None
    if signal in _SIGNALS:
        klass, weight = _SIGNALS[signal]
        fact = _fact(klass, weight, f"a process of the job was ended by signal {signal}", line)
        # the sender of SIGKILL is unknown
        return [fact._replace(retry="retry") if signal == 9 else fact]
    return [_fact("child_failed", HINT, f"a process of the job failed with exit code {code}", line)]


def _fact(klass: str, weight: int, words: str, line: Line) -> Fact:
    return Fact(klass, weight, words, "launcher", line.at)


LAUNCHERS = Reader(
    (
        "exitcode", "exits with return code", "exit code", "exited", "exit status", "errorcode",
        "mpi_abort", "crashed with", "terminated with", "was aborted", "replica(s) failed",
        "killing subprocess", " failed", "unknown status", "with code", "main process exited",
        "terminated normally",
    ),
    _read,
)  # fmt: skip

"""The end of a failed container: a short termination message first, then the full one."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pairun.base.forwarding import NOTHING
from pairun.base.grace import Grace
from pairun.base.paths import EXIT_SPEC_FILE, log_dir, runtime_file
from pairun.runtime.children import ask
from pairun.runtime.exitmatching import NO_MATCH
from pairun.runtime.supervisor import Supervisor
from pairun.secrets.vault import Vault
from pairun.volume.door import Door

if TYPE_CHECKING:
    # A successful job never imports it.
    from pairun.runtime.exitsummary import SummaryInput, SummaryOutput

_SUMMARY_S = 15.0
"""The limit of the summary without a grace time, in seconds.

Nothing waits for it then: on a busy node, a late diagnosis is better than none.
"""


class Ending:
    """Writes the termination message and determines the container's exit code.

    Attributes:
        failed_code: the code that the exit spec and the message use as the user's exit code.
        diagnosis: why the command died; None until the summary is made.
        code_file: the rules file that overrode the exit code; empty if the exit spec did.
    """

    def __init__(
        self,
        door: Door,
        env: Mapping[str, str],
        vault: Vault,
        supervisor: Supervisor,
        grace: Grace,
        say: Callable[[str], None],
    ) -> None:
        self._door = door
        self._env = env
        self._vault = vault
        self._supervisor = supervisor
        self._grace = grace
        self._say = say
        self._log_folder = log_dir(door.root, env)
        self.diagnosis: Mapping[str, Any] | None = None
        self.code_file = ""
        self._kills_before = oom_kills()
        self.failed_code = self._own_code = self._unmatched = NO_MATCH
        self._of_command = False

    def begin(
        self, code: int, *, of_command: bool, script_code: int | None = None, is_final: bool = False
    ) -> None:
        """Write the short message at once, in case a later write fails.

        Args:
            code: the container's exit code without an exit spec.
            of_command: whether the user's command failed; only its exit code may be overridden.
            script_code: the exit code of the plugin script that failed: the exit spec and the
                termination message use it as the user's, as OpenPAI's runtime does.
            is_final: whether an exit spec without a match keeps the code.
        """
        self._of_command = of_command
        self.failed_code = code if script_code is None else script_code
        self._own_code = code
        spec = runtime_file(self._door.root, EXIT_SPEC_FILE)
        replaced = of_command and not is_final and self._door.is_file(spec)
        self._unmatched = NO_MATCH if replaced else code
        self._write_short(self._unmatched)

    def finish(self, script: str) -> int:
        """Write the full message; returns the container's exit code.

        Args:
            script: path of the user's command; empty if it is not a script.
        """
        from pairun.runtime.exitsummary import SummaryInput

        self._report_oom_kills()
        question = SummaryInput(
            volume=self._door.root,
            failed_code=self.failed_code,
            own_code=self._own_code,
            unmatched_code=self._unmatched,
            # A failed task has already reported its cause.
            of_command=self._of_command,
            facts={
                "oom_kills": self._oom_kills(),
                "stopped": self._grace.signal is not None,
                "interrupted": self._grace.signal == signal.SIGINT,
            },
            secrets=self._vault.texts,
            script=script if self._of_command else "",
        )
        answer = self._ask(question)
        if answer is None:
            # The summary failed; keep the user's exit code.
            self._write_short(self._own_code)
            return self._own_code
        for expression in answer.stopped:
            self._say(f"an expression of the exit spec took too long and was stopped: {expression}")
        self._write(answer.message)
        for line in answer.diagnosis_lines:
            self._say(line)
        self.diagnosis = answer.diagnosis
        self.code_file = answer.code_file
        return answer.exit_code

    def _ask(self, question: SummaryInput) -> SummaryOutput | None:
        from pairun.runtime.exitsummary import SummaryOutput

        until = time.monotonic() + _SUMMARY_S

        def left_s() -> float:
            grace_s = self._grace.for_summary_s()
            own_s = max(0.0, until - time.monotonic())
            return own_s if grace_s is None else min(own_s, grace_s)

        try:
            status, summary = ask(
                self._supervisor, SummaryOutput, ("summary",), self._env, question._asdict(),
                limit_s=left_s, forwarding=NOTHING,
            )  # fmt: skip
        except OSError as e:
            self._say(f"the exit summary could not be started: {e.strerror}")
            return None
        if summary is None:
            self._say(f"the exit summary exited with {status}; using the short one")
        return summary

    def _report_oom_kills(self) -> None:
        if count := self._oom_kills():
            killed = f"{count} process{'es' * (count > 1)}"
            self._say(f"the kernel killed {killed} of this container for its memory")

    def _oom_kills(self) -> int | None:
        now = oom_kills()
        return None if now is None or self._kills_before is None else now - self._kills_before

    def _write_short(self, exit_code: int) -> None:
        from pairun.runtime.termination import budget_of, short_message

        self._write(short_message(exit_code, self.failed_code, budget_of(self._env)))

    def _write(self, text: str) -> None:
        from pairun.runtime.termination import message_paths, write_message

        paths = message_paths(self._env, self._log_folder)
        for complaint in write_message(self._door, paths, text):
            self._say(complaint)


_CGROUPS = "/sys/fs/cgroup"


def oom_kills() -> int | None:
    """How many processes in the container's cgroup were killed for memory; None if unknown.

    Includes children of the user's command (Linux, admin-guide/cgroup-v2 ``memory.events``;
    cgroup-v1/memory ``memory.oom_control``).
    """
    for path in _memory_files():
        try:
            with open(path, encoding="ascii", errors="replace") as f:
                kills = re.search(r"^oom_kill (\d+)$", f.read(), re.MULTILINE)
        except OSError:
            continue
        if kills:
            return int(kills[1])
    return None


def _memory_files() -> Iterator[str]:
    """Files that may contain the count: a container may see its cgroup as the root or below it."""
    paths = {"memory": "/", "": "/"}
    try:
        with open("/proc/self/cgroup", encoding="utf-8", errors="replace") as f:
            for line in f:
                _, controllers, path = line.rstrip("\n").split(":", 2)
                for name in controllers.split(","):
                    if name in paths:
                        paths[name] = path
    except (OSError, ValueError):
        pass
    for path in dict.fromkeys((paths[""], "/")):
        yield os.path.join(_CGROUPS, path.lstrip("/"), "memory.events")
    for path in dict.fromkeys((paths["memory"], "/")):
        yield os.path.join(_CGROUPS, "memory", path.lstrip("/"), "memory.oom_control")

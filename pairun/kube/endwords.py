"""What a container's end means: its exit code, and the last lines in its termination message."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from pairun.base.escapes import visible

INIT, APP = "init", "app"
"""The names of pairun's init container and of the user's container."""
START, END = "[PAI_RUNTIME_ERROR_START]", "[PAI_RUNTIME_ERROR_END]"
"""OpenPAI's tags around the message that PID 1 writes (pairun.runtime.termination)."""
MESSAGE_BYTES = 12 * 1024
"""Kubernetes keeps at most this many bytes of all termination messages of a Pod."""
HEADLINE = 200
DIAGNOSIS = ("class", "fault", "retry", "confidence", "headline", "evidence", "advice")
"""The fields in which PID 1 explains why the command failed (pairun.runtime.termination)."""
DIAGNOSIS_CHARS = 512

INIT_CODES = {
    251: "the gang was not complete in time",
    252: "the barrier cannot pass",
    253: "a port of this container is taken",
    254: "the image does not exist, or the registry refuses this job",
}
"""The meanings in docs/exit-codes.md."""
APP_CODES = {
    126: "the command cannot be executed",
    127: "the image does not have the command",
    255: "a task before the command failed, or an exit handler, or the cluster's exit spec decided",
}
SIGNALS = {
    129: "SIGHUP",
    130: "SIGINT",
    134: "SIGABRT",
    137: "SIGKILL",
    139: "SIGSEGV",
    143: "SIGTERM",
}
_FAILED_TASK = re.compile(r"^failed +([^\s:]+): [^\n]*\n +(\S[^\n]*)$", re.MULTILINE)
"""A failed task and its reason, as the init phase prints them."""
_STAGE = "[openpai-runtime] [INFO] "
"""In the lines of ``runtime.log`` that only say how far PID 1 is, such as USER COMMAND END."""
_ERROR = re.compile(r"^error\[PR\d{3}\]: [^\n]*$", re.MULTILINE)
_HELP = re.compile(r"^ +help: ([^\n]*)$", re.MULTILINE)
"""An error, and what to do, as the init phase prints them before it has a plan."""


def headline(message: str) -> str:
    """The most useful line of a termination message.

    It is the diagnosis' headline, else the matched text, else the last line of the user's command
    or of the container.
    """
    read = _document(message)
    if read is None:
        text = _tagged(message) or message[:MESSAGE_BYTES]
        if task := failed_task(text):
            return one_line(": ".join(task))[:HEADLINE]
        if error := _ERROR.search(text):
            # The command that the advice tells to type is of no use if it is cut.
            advice = _HELP.search(text, error.end())
            return one_line("; ".join([error[0], *([advice[1]] if advice else [])]))[
                :DIAGNOSIS_CHARS
            ]
        return _last_line(text)
    if (why := _diagnosis(read)).get("class") not in (None, "unknown"):
        words = (f"{why.get('headline', '')} ({why['class']})", why.get("evidence"))
        return one_line(": ".join(str(w) for w in words if w))[:HEADLINE]
    logs = read.get("errorLogs")
    logs = logs if isinstance(logs, dict) else {}
    texts = (read.get("matchedUserLogString"), read.get("matchedPlatformLogString"),
             logs.get("user"), logs.get("platform"))  # fmt: skip
    return _last_line(next((t for t in texts if isinstance(t, str) and t.strip()), ""))


def failed_task(message: str) -> tuple[str, str] | None:
    """The name of the task that ended the init phase, and the reason; None if no task failed."""
    tasks = _FAILED_TASK.findall(message)
    return tasks[-1] if tasks else None


def diagnosis(message: str) -> Mapping[str, str | float]:
    """Why the command failed, from a termination message; empty if it does not say."""
    return _diagnosis(_document(message) or {})


def _tagged(message: str) -> str:
    return message[:MESSAGE_BYTES].partition(START)[2].partition(END)[0]


def _document(message: str) -> Mapping[str, Any] | None:
    """The YAML document in a termination message; None if there is none."""
    import yaml

    try:
        read = yaml.safe_load(_tagged(message))
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
    return read if isinstance(read, dict) else None


def _diagnosis(read: Mapping[str, Any]) -> dict[str, str | float]:
    why = read.get("diagnosis")
    diagnosis: dict[str, str | float] = {}
    if not isinstance(why, dict):
        return diagnosis
    for name in DIAGNOSIS:
        if isinstance(value := why.get(name), str):
            diagnosis[name] = value[:DIAGNOSIS_CHARS]
        elif isinstance(value, float) and math.isfinite(value):
            diagnosis[name] = value
    return diagnosis


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip() and _STAGE not in line]
    return one_line(lines[-1])[:HEADLINE] if lines else ""


def one_line(text: str) -> str:
    """A text as one line that is safe to print on a terminal."""
    return visible(" ".join(text.split()))


def meaning(code: int, table: Mapping[int, str]) -> str:
    """An exit code, with its meaning if known."""
    known = table.get(code) or (f"ended by {SIGNALS[code]}" if code in SIGNALS else "")
    return f"{code} ({known})" if known else str(code)


def ended_with(ended: Mapping[str, Any], what: str) -> str:
    """A container's end: its exit code, the meaning, and its last line."""
    code = ended.get("exitCode")
    code = code if isinstance(code, int) else 1
    text = meaning(code, INIT_CODES if what == INIT else APP_CODES)
    if ended.get("reason") == "OOMKilled":
        text = f"{code} (out of memory)"
    said = headline(str(ended.get("message") or ""))
    return f"{text}: {said}" if said else text

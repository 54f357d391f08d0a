"""The termination message: what the platform reads about a failed container.

Its format is OpenPAI's: YAML between two tags, which the REST server parses and the portal shows.
Kubernetes keeps the *last* 4096 bytes, or fewer if a Pod has many containers. So a message never
exceeds its budget, including tags and newlines, and is valid at every budget. The most important
parts are cut last.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from pairun.base.escapes import ESCAPE
from pairun.base.folder import open_regular
from pairun.volume.door import Door

ERROR_START = "[PAI_RUNTIME_ERROR_START]"
ERROR_END = "[PAI_RUNTIME_ERROR_END]"
DEFAULT_BUDGET = 4096
USER_LINES = 15
PLATFORM_LINES = 10
LINES_BEFORE_MATCH = 3
EXCERPT_BYTES = 4048
MATCHED_BYTES = 2048
DIAGNOSIS_BYTES = 512


class Summary(NamedTuple):
    """The contents of a termination message.

    Attributes:
        user_exit_code: of the user's command.
        matched_user: the text that a pattern matched in the user's log, or None.
        matched_platform: the text that a pattern matched in the platform's log, or None.
        double_ecc: the GPU's state if a pattern tests it, else None.
        user_log: an excerpt of the user's log.
        platform_log: an excerpt of the platform's log.
        diagnosis: ``class``, ``fault``, ``retry``, ``confidence``, ``headline``, ``evidence`` and
            ``advice``; None without a diagnosis.
    """

    exit_code: int
    user_exit_code: int
    matched_user: str | None = None
    matched_platform: str | None = None
    double_ecc: bool | None = None
    user_log: str = ""
    platform_log: str = ""
    diagnosis: Mapping[str, Any] | None = None


def message(
    summary: Summary, budget: int = DEFAULT_BUDGET, mask: Callable[[str], str] = str
) -> str:
    """The termination message.

    Args:
        summary: its contents.
        budget: the maximum size in bytes; at least 256.
        mask: masks secrets in a text (`Vault.text`); applied to each text before it is cut, and
            never to keys, which the REST server reads.

    Returns:
        At most ``budget`` bytes of UTF-8; the logs are cut first, the exit codes never.
    """
    why = summary.diagnosis or {}

    def shown(text: str | None) -> str:
        return mask(printable(text or ""))

    texts = {
        "platform_log": shown(summary.platform_log),
        "user_log": shown(summary.user_log),
        "matched_platform": _head(shown(summary.matched_platform), MATCHED_BYTES),
        "evidence": _head(shown(why.get("evidence")), DIAGNOSIS_BYTES),
        "advice": _head(shown(why.get("advice")), DIAGNOSIS_BYTES),
        "matched_user": _head(shown(summary.matched_user), MATCHED_BYTES),
        "headline": _head(shown(why.get("headline")), DIAGNOSIS_BYTES),
    }
    out = _document(summary, texts)
    for name, text in texts.items():
        if len(out.encode()) <= budget:
            break
        shorten = _tail if name.endswith("_log") else _head
        texts[name] = _longest(summary, texts, name, text, shorten, budget)
        out = _document(summary, texts)
    return out


def excerpt(text: str, lines: int, span: tuple[int, int] | None = None) -> str:
    """The most useful part of a log, in whole lines.

    Args:
        text: the end of the log.
        span: start and end of a match, around which to cut; None for the log's end.
    """
    if span is None:
        end = _tail(text, EXCERPT_BYTES).replace("\r\n", "\n")
        return "\n".join(end.split("\n")[-lines:])
    start = text.rfind("\n", 0, span[0]) + 1
    matched = text[start : span[1]].count("\n") + 1
    after = text[start:].split("\n", lines + matched)[: lines + matched]
    count_before = min(max(LINES_BEFORE_MATCH, lines - len(after)), max(lines - matched, 0))
    before = text[:start].split("\n")[:-1][-count_before:]
    kept = (before if lines > matched else []) + after
    return "\n".join(kept[:lines]).replace("\r\n", "\n").replace("\r", "\n")


def printable(text: str) -> str:
    """Remove what YAML cannot contain literally: escape sequences and control characters."""
    text = _ESCAPE_SEQUENCES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _NOT_PRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


_ESCAPE_SEQUENCES = re.compile(ESCAPE)
# YAML 1.2 (5.1), minus the characters besides newline that readers treat as line breaks.
_NOT_PRINTABLE = re.compile(
    "[^\t\n -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)


def _document(summary: Summary, texts: dict[str, str]) -> str:
    return f"{ERROR_START}\n{''.join(_yaml(summary, texts))}\n{ERROR_END}"


def _yaml(summary: Summary, texts: dict[str, str]) -> Iterator[str]:
    yield f"exitCode: {summary.exit_code}\noriginUserExitCode: {summary.user_exit_code}\n"
    if summary.matched_user is not None and texts["matched_user"]:
        yield f"matchedUserLogString: {_scalar(texts['matched_user'], 2)}\n"
    if summary.matched_platform is not None and texts["matched_platform"]:
        yield f"matchedPlatformLogString: {_scalar(texts['matched_platform'], 2)}\n"
    if summary.double_ecc is not None:
        yield f"matchedGpuInfo:\n  nvidiaDoubleEccError: {str(summary.double_ecc).lower()}\n"
    if summary.diagnosis is not None:
        yield from _diagnosis_yaml(summary.diagnosis, texts)
    user, platform = _scalar(texts["user_log"], 4), _scalar(texts["platform_log"], 4)
    yield f"errorLogs:\n  user: {user}\n  platform: {platform}\n"


def _diagnosis_yaml(why: Mapping[str, Any], texts: dict[str, str]) -> Iterator[str]:
    yield "diagnosis:\n"
    for name in ("class", "fault", "retry", "confidence"):
        yield f"  {name}: {json.dumps(why[name])}\n"
    for name in ("headline", "evidence", "advice"):
        if texts[name]:
            yield f"  {name}: {_scalar(texts[name], 4)}\n"


def _scalar(text: str, indent: int) -> str:
    """A text as a YAML scalar: a literal block if it has several lines, else quoted."""
    if not text.strip("\n") or "\n" not in text:
        return json.dumps(text, ensure_ascii=False)
    body = text.rstrip("\n")
    chomp = {0: "-", 1: ""}.get(len(text) - len(body), "+")
    # If the first line is indented, the block's indentation must be explicit (YAML 1.2, 8.1.1.1).
    indicator = "2" if text[0] in " \t\n" else ""
    margin = " " * indent
    lines = (margin + line if line else "" for line in body.split("\n"))
    extra = "\n" * max(len(text) - len(body) - 1, 0)
    return f"|{indicator}{chomp}\n" + "\n".join(lines) + extra


def _longest(
    summary: Summary,
    texts: dict[str, str],
    name: str,
    text: str,
    shorten: Callable[[str, int], str],
    budget: int,
) -> str:
    """The longest cut of one text that keeps the message within its budget; may be empty."""
    low, high = 0, len(text.encode())
    while low < high:
        size = (low + high + 1) // 2
        document = _document(summary, {**texts, name: shorten(text, size)})
        low, high = (size, high) if len(document.encode()) <= budget else (low, size - 1)
    return shorten(text, low)


def _head(text: str, size: int) -> str:
    return text.encode()[:size].decode("utf-8", "ignore")


def _tail(text: str, size: int) -> str:
    data = text.encode()
    return data[max(len(data) - size, 0) :].decode("utf-8", "ignore")


PATH_VARIABLE = "PAIRUN_TERMINATION_LOG"
BUDGET_VARIABLE = "PAIRUN_TERMINATION_BYTES"
MIN_BUDGET = 256
OPENPAI_MESSAGE = "/tmp/pai-termination-log"
KUBERNETES_MESSAGE = "/dev/termination-log"


def short_message(exit_code: int, user_code: int, budget: int) -> str:
    """The message that is written first, before logs are read."""
    return message(Summary(exit_code=exit_code, user_exit_code=user_code), budget)


def write_message(door: Door, paths: Iterable[str], text: str) -> list[str]:
    """Write a termination message.

    Replaces a file on the volume. Overwrites any other file in place, because it may be a mount.

    Returns:
        A line for each path that could not be written, with the reason.
    """
    complaints = []
    for path in paths:
        try:
            if path in door:
                door.write(path, text.encode())
            else:
                _write_in_place(path, text.encode())
        except OSError as e:
            complaints.append(f"the termination message cannot be written to {path}: {e.strerror}")
    return complaints


def _write_in_place(path: str, data: bytes) -> None:
    """Overwrite a file in place; on a full disk its old content stays."""
    fd = open_regular(path, os.O_WRONLY | os.O_CREAT)
    try:
        _reserve(fd, len(data))
        os.pwrite(fd, data, 0)
        os.ftruncate(fd, len(data))
    finally:
        os.close(fd)


def _reserve(fd: int, size: int) -> None:
    """Reserve the space for the first bytes of a file.

    Raises:
        OSError: the disk is full.
    """
    try:
        os.posix_fallocate(fd, 0, size)
    except OSError as e:
        # not supported by every file system (posix_fallocate(3))
        if e.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENODEV, errno.ENOSYS):
            raise


def message_paths(env: Mapping[str, str], log_folder: str) -> list[str]:
    """The paths of the termination message: the one that the platform reads, and one in the logs.

    Args:
        env: ``PAIRUN_TERMINATION_LOG`` names the platform's file; empty means none. Without it,
            an existing file of OpenPAI or Kubernetes is used, and OpenPAI's in a Framework.
        log_folder: the folder of this container's logs.
    """
    path = env.get(PATH_VARIABLE)
    if path is None:
        existing = (p for p in (OPENPAI_MESSAGE, KUBERNETES_MESSAGE) if os.path.exists(p))
        default = OPENPAI_MESSAGE if env.get("FC_FRAMEWORK_NAME") else ""
        path = next(existing, default)
    logged = os.path.join(log_folder, os.path.basename(OPENPAI_MESSAGE))
    # PID 1 has left the working directory.
    return [os.path.join(env.get("PAI_WORK_DIR", "/"), path), logged] if path else [logged]


def budget_of(env: Mapping[str, str]) -> int:
    """The largest termination message in bytes: ``PAIRUN_TERMINATION_BYTES``, 256 to 4096."""
    text = env.get(BUDGET_VARIABLE, "")
    return min(max(int(text), MIN_BUDGET), DEFAULT_BUDGET) if text.isdecimal() else DEFAULT_BUDGET

"""Lists the job's commands that may have failed, if the cause is otherwise unknown.

The shell runs a job's commands with errexit: the first one that fails ends the script, often
without a message.
"""

from __future__ import annotations

import re

from pairun.diagnose.classes import CLASSES, UNKNOWN
from pairun.diagnose.diagnosis import Diagnosis, Evidence
from pairun.secrets.vault import Vault
from pairun.volume.door import Door

_MAX_BYTES = 1 << 16
_COMMAND_CHARS = 60
_ALL_CHARS = 160
_ERREXIT = "set -o errexit\n"
"""The start of a script that ends at the first failed command."""

_WITHOUT_ERREXIT = re.compile(r"\bset \+(?:\w*e|o errexit)")
_XTRACE = re.compile(r"\bset -(?:\w*x|o xtrace)")
_CONTINUED = re.compile(r"\\\n\s*")
_SSH_CODE = 255
_SSH = re.compile(
    r"(?:^|[;&|({`!] *|\b(?:exec|if|do|then|sudo|time|timeout \S+) )(?:ssh|scp|sftp) "
)
_OF_SSH = "ssh ends with 255 if it cannot connect or loses the connection"
"""ssh(1), EXIT STATUS: that of the remote command, or 255 if an error occurred."""

_NEVER_FAILS = re.compile(
    r"#|set [-+]|if \(set -o pipefail\)|(?:do|done|then|else|fi|esac|[{}();]+)$"
    r"|echo\b[^<>|&;$`(\\]*$"
)
"""Lines of a script that are not commands, or almost never fail."""


def with_commands(
    diagnosis: Diagnosis, door: Door, script: str, code: int, vault: Vault
) -> Diagnosis:
    """The diagnosis; if the cause is unknown, with the commands that may have failed.

    Args:
        script: path of the user's command; empty if it is not a shell script.
        vault: masks the script, before a command is cut.
    """
    # POSIX: codes 126 to 128 are the shell's, those above it signals, of which Linux has 64
    if diagnosis.klass != UNKNOWN or not script or not code or 126 <= code <= 192:
        return diagnosis
    try:
        text = vault.text(door.read(script, _MAX_BYTES).decode("utf-8", "replace"))
    except OSError:
        return diagnosis
    commands = _commands_in(text)
    if not commands or not text.startswith(_ERREXIT) or _WITHOUT_ERREXIT.search(text):
        return diagnosis
    by_ssh = [each for each in commands if _SSH.search(each)] if code == _SSH_CODE else []
    evidence, advice = list(diagnosis.evidence), diagnosis.advice
    if diagnosis.headline != CLASSES[UNKNOWN].meaning:
        evidence.append(Evidence("", 0, diagnosis.headline))
        advice = "correct it, or append `|| true` if its failure does not matter"
    if len(commands) > 1:
        evidence.append(Evidence("", 0, f"one of: {_listed(commands)}"))
        if not _XTRACE.search(text):
            advice = "add `set -x` as the first command: the log then shows each one before it runs"
    if by_ssh:
        evidence.insert(0, Evidence("", 0, _OF_SSH))
        advice = "check that the other container still runs; `ssh -v` shows why ssh fails"
    subject = _quoted(commands[0]) if len(commands) == 1 else "a command"
    if len(by_ssh) == 1 and len(commands) > 1:
        subject = f"a command, probably {_quoted(by_ssh[0])},"
    headline = f"{subject} failed with exit code {code}; no command after it ran"
    return diagnosis._replace(headline=headline, evidence=tuple(evidence), advice=advice)


def _commands_in(script: str) -> list[str]:
    """The lines that may have failed; a continued line counts as one."""
    lines = (line.strip() for line in _CONTINUED.sub(" ", script).splitlines())
    return [line for line in lines if line and not _NEVER_FAILS.match(line)]


def _listed(commands: list[str]) -> str:
    shown: list[str] = []
    chars = 0
    for command in map(_quoted, commands):
        chars += len(command) + 2
        if chars > _ALL_CHARS:
            return f"{'; '.join(shown)}; … ({len(commands)} in all)"
        shown.append(command)
    return "; ".join(shown)


def _quoted(command: str) -> str:
    cut = len(command) > _COMMAND_CHARS
    return f"`{command[: _COMMAND_CHARS - 1]}…`" if cut else f"`{command}`"

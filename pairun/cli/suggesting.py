"""Suggestions for words that pairun does not know."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence

from pairun.errors import nearest

_REVIEW = "--dry-run JOB"
MEANT = {
    "plan": _REVIEW, "validate": _REVIEW, "check": _REVIEW, "review": _REVIEW, "preview": _REVIEW,
    "dry-run": _REVIEW, "--dryrun": _REVIEW, "--dry_run": _REVIEW, "-dry-run": _REVIEW,
    "--plan": _REVIEW, "--check": _REVIEW, "--validate": _REVIEW,
    "version": "--version", "-V": "--version", "-v": "--version",
    "apply": "submit JOB", "create": "submit JOB", "start": "run JOB", "exec": "run JOB",
    "stop": "delete NAME", "cancel": "delete NAME", "kill": "delete NAME", "rm": "delete NAME",
    "destroy": "delete NAME", "log": "logs NAME", "list": "status NAME", "ps": "status NAME",
    "describe": "status NAME", "explain": "doc NAME", "docs": "doc NAME", "man": "doc NAME",
    "scaffold": "new job", "generate": "new job",
}  # fmt: skip
"""Words from other tools, and pairun's words for the same."""

_TOP_OPTIONS = {"--", "--dry-run", "--help", "-h", "--version"}
"""Options without which `pairun` alone does nothing; its other options are also those of commands."""

_JOB_FILES = (".yaml", ".yml", ".json")


def suggested(argv: Sequence[str], commands: Collection[str]) -> str | None:
    """The error about other tools' words at the start of a command line; None if there are none.

    Args:
        argv: the arguments, without the program's name; at least one.
        commands: the existing commands.
    """
    word = argv[0]
    if word.startswith("-") and (command := _late_command(argv, commands)):
        import shlex

        at = argv.index(command)
        typed = shlex.join([command, *argv[:at], *argv[at + 1 :]])
        return f"options come after the command; did you mean `pairun {_shown(typed)}`?"
    # A job file may have any name, even such a word.
    if os.path.exists(word):
        return None
    given = [a for a in argv[1:] if not a.startswith("-")]
    if word == "help":
        typed = "--help"
        if given:
            about = _shown(given[0])
            typed = f"{about} --help" if about in commands else f"doc {about}"
    elif word in MEANT:
        jobs = [a for a in given if a.endswith(_JOB_FILES) or os.path.isfile(a)]
        typed = MEANT[word]
        typed = typed.replace("JOB", _shown(jobs[0])) if jobs else typed
        typed = typed.replace("NAME", _shown(given[0])) if given else typed
    else:
        return None
    kind = "option" if word[0] == "-" else "command"
    return f"there is no {kind} '{word}'; did you mean `pairun {typed}`?"


def _late_command(argv: Sequence[str], commands: Collection[str]) -> str | None:
    """The command after options that belong behind it; None if there is none."""
    if any(word in _TOP_OPTIONS or word in MEANT for word in argv if word.startswith("-")):
        return None
    words = (word for word in argv if word in commands and not os.path.isfile(word))
    return next(words, None)


def no_command(words: Sequence[str], commands: Collection[str]) -> str:
    """The error if neither a command nor --dry-run is given.

    Args:
        words: the arguments that are not options.
        commands: the existing commands.
    """
    if not words:
        return "no command given; `pairun --help` lists the commands"
    word = _shown(words[0])
    if words[0] == "-" or os.path.exists(words[0]):
        return f"no command given; did you mean `pairun --dry-run {word}`?"
    if words[0].endswith(_JOB_FILES):
        return (
            f"no command given; did you mean `pairun --dry-run {word}`? There is no file '{word}'"
        )
    near = nearest(words[0], commands)
    hint = f"did you mean '{near}'?" if near else "`pairun --help` lists the commands"
    return f"there is no command and no file '{word}'; {hint}"


def unknown_arguments(words: Sequence[str], options: Iterable[str]) -> str:
    """The error about unknown arguments of a command.

    Args:
        words: those arguments.
        options: the command's options.
    """
    message = f"unrecognized arguments: {' '.join(map(_shown, words))}"
    option = next((word.partition("=")[0] for word in words if word.startswith("--")), "")
    near = nearest(option, options) if option else None
    return f"{message}; did you mean '{near}'?" if near else message


def _shown(word: str) -> str:
    from pairun.base.escapes import visible

    return visible(word)

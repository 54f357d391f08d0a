"""The git clone options that a job may set."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

_WITH_VALUE = """
--depth --shallow-since --shallow-exclude --filter --branch --origin --jobs --server-option --config
"""

_FLAGS = """
--single-branch --no-single-branch --no-tags --no-checkout --sparse --bare --mirror
--recurse-submodules --shallow-submodules --no-shallow-submodules --remote-submodules
--no-remote-submodules --also-filter-submodules --reject-shallow --no-reject-shallow
--local --no-local --no-hardlinks --ipv4 --ipv6 --quiet --verbose --progress --no-progress
"""

ALLOWED: dict[str, tuple[str, bool]] = {
    **{name: (name, True) for name in _WITH_VALUE.split()},
    **{name: (name, False) for name in _FLAGS.split()},
    **{f"-{name[2]}": (name, True) for name in ("--branch", "--origin", "--jobs", "--config")},
    **{f"-{name[2]}": (name, False) for name in ("--local", "--quiet", "--verbose")},
    "-n": ("--no-checkout", False),
    "-4": ("--ipv4", False),
    "-6": ("--ipv6", False),
    "--recursive": ("--recurse-submodules", False),
}
"""The spelling of each allowed option, and whether it takes a value.

Any other option could start a program (--upload-pack, --template, …), or leads to another place
(--separate-git-dir, --reference, --bundle-uri, …).
"""

_SETTINGS = """
advice.[a-z]+ branch.autosetupmerge branch.autosetuprebase checkout.thresholdforparallelism
checkout.workers color.ui core.autocrlf core.bigfilethreshold core.compression core.eol
core.filemode core.ignorecase core.longpaths core.packedgitlimit core.packedgitwindowsize
core.precomposeunicode core.preloadindex core.quotepath core.safecrlf core.symlinks
fetch.fsckobjects fetch.parallel fetch.prune fetch.prunetags fetch.unpacklimit http.maxrequests
http.postbuffer http.version index.threads index.version init.defaultbranch
lfs.concurrenttransfers lfs.fetchexclude lfs.fetchinclude merge.conflictstyle merge.ff
pack.threads pack.windowmemory protocol.version pull.ff pull.rebase push.default rebase.autostash
submodule.fetchjobs submodule.recurse transfer.fsckobjects user.email user.name
"""
"""Patterns of the allowed keys of ``--config``, in lower case.

They start no program, and name no file, server or credential.
"""

_NUMBERS = {"--depth": 1, "--jobs": 0}
"""The smallest value of each number."""

_FILTER = r"(blob:none|blob:limit=\d+[kmg]?|tree:\d+|object:type=\w+)"

_VALUES = {
    "--filter": rf"{_FILTER}|combine:{_FILTER}([+]{_FILTER})*",
    "--origin": r"[A-Za-z0-9_](?:[A-Za-z0-9_-]|\.(?!\.))*(?<![.])(?<!\.lock)",
}
"""The form of other values."""

LARGEST = 2**31 - 1
"""git stores numbers in a C int."""


def parse_options(options: Iterable[str]) -> list[tuple[str, str | None]]:
    """The options in a job's texts, each with its value.

    Raises:
        ValueError: an option is not allowed, or lacks its value.
    """
    out: list[tuple[str, str | None]] = []
    words: list[str] = []
    for item in options:
        try:
            words += shlex.split(item)
        except ValueError as e:
            raise ValueError(f"the option {item!r} of git clone cannot be read: {e}") from e
    while words:
        word = words.pop(0)
        name, has_value, value = word.partition("=")
        if not word.startswith("--"):
            # -b main and -bmain
            name, value = word[:2], word[2:]
            has_value = value
            if value and not ALLOWED.get(name, ("", True))[1]:
                words.insert(0, "-" + value)  # -qn
                has_value = ""
        if name not in ALLOWED or (has_value and not ALLOWED[name][1]):
            raise ValueError(
                f"the option {word!r} of git clone is not allowed; allowed: {', '.join(ALLOWED)}"
            )
        name, takes_value = ALLOWED[name]
        if takes_value and not has_value:
            value = words.pop(0) if words else ""
        if takes_value and (not value or value.startswith("-")):
            raise ValueError(f"the option {name} of git clone needs a value")
        if name in _NUMBERS and not (
            re.fullmatch("[0-9]{1,10}", value) and _NUMBERS[name] <= int(value) <= LARGEST
        ):
            raise ValueError(
                f"the option {name} of git clone needs a number from {_NUMBERS[name]} to "
                f"{LARGEST}, not {value!r}"
            )
        if name in _VALUES and not re.fullmatch(_VALUES[name], value):
            raise ValueError(f"the option {name} of git clone cannot be {value!r}")
        key = value.partition("=")[0].lower()
        if name == "--config" and not re.fullmatch("|".join(_SETTINGS.split()), key):
            raise ValueError(
                f"the setting {key!r} of git is not allowed; allowed: {', '.join(_SETTINGS.split())}"
            )
        out.append((name, value if takes_value else None))
    return out


def option_words(options: Iterable[tuple[str, str | None]]) -> list[str]:
    """Options as arguments of git."""
    return [name if value is None else f"{name}={value}" for name, value in options]

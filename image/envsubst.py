#!/usr/bin/python3.11 -ISB
"""Puts variables into messages of git's scripts, in the place of git's own program of 2 MB (git-sh-i18n(1))."""

import os
import re
import sys

VARIABLE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})", re.ASCII)


def name(match: "re.Match[str]") -> str:
    """The variable that stands there."""
    return match[1] or match[2]


if sys.argv[1:2] == ["--variables"]:
    print("\n".join(name(match) for match in VARIABLE.finditer(sys.argv[2])))
else:
    # Git's program replaces only variables that its argument names.
    allowed = {name(match) for match in VARIABLE.finditer(sys.argv[1])}
    replaced = VARIABLE.sub(
        lambda match: os.environ.get(name(match), "") if name(match) in allowed else match[0],
        sys.stdin.read(),
    )
    sys.stdout.write(replaced)

"""``runtime.d/env``: variables from init tasks for the user's container, one per line."""

from __future__ import annotations

import re

from pairun.errors import Place, Problems, Source

_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")


def read_variables(source: Source, problems: Problems) -> dict[str, str]:
    """Read lines of ``NAME=value``; the last one of a name wins.

    Values are literal: quotes, ``$`` and backslashes have no meaning. Ignores empty lines and lines
    that begin with ``#``; ``export`` may precede a name.

    Args:
        source: the file; problems never quote its lines, because values may be credentials.
        problems: takes a problem for every invalid line.
    """
    variables: dict[str, str] = {}
    lines = source.text.split("\n")
    source.hide(1, len(lines))
    for number, raw in enumerate(lines, 1):
        line = raw.removesuffix("\r")
        text = line.lstrip(" \t")
        if not text or text.startswith("#"):
            continue
        text = re.sub(r"^export[ \t]+", "", text)
        name, equals, value = text.partition("=")
        place = Place(source, number, len(line) - len(text) + 1)
        if not equals:
            problems.error("PR717", "this line is not NAME=value", place)
        elif not _NAME.fullmatch(name):
            problems.error(
                "PR717",
                "the text before '=' is not the name of a variable",
                place,
                "letters, digits and '_', no digit first, no space before '='",
            )
        elif "\0" in value:
            problems.error("PR717", f"the value of {name} holds a NUL character", place)
        else:
            variables[name] = value
    return variables

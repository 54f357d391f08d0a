"""The package `requests`, without the package that guesses the encoding of a text.

Nothing here asks for such a guess, and importing what guesses takes a tenth of the time of
`requests` itself, which every init phase pays. Where there is none, `requests` takes a text without
a ``charset`` for UTF-8.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator
from typing import Any, cast

__all__ = ["requests"]

_GUESSERS = ("chardet", "charset_normalizer")


@contextlib.contextmanager
def _without(names: tuple[str, ...]) -> Iterator[None]:
    """Let imports of these packages fail (Python Language Reference, 5.3.1, "The module cache")."""
    modules = cast("dict[str, Any]", sys.modules)
    kept = {name: modules[name] for name in names if name in modules}
    modules.update(dict.fromkeys(names))
    try:
        yield
    finally:
        for name in names:
            del modules[name]
        modules.update(kept)


warnings.filterwarnings("ignore", "Unable to find acceptable character detection dependency")
with _without(_GUESSERS):
    import requests

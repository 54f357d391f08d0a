"""The package `requests`, without the package that guesses text encodings.

pairun needs no such guess, and importing that package takes a tenth of the time of `requests`
itself in every init phase. Without it, `requests` reads a text without a ``charset`` as UTF-8.
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
    """Make imports of packages fail (Python Language Reference, 5.3.1, "The module cache")."""
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

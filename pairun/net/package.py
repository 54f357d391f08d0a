"""The packages `requests` and `urllib3`, without those that guess encodings and read versions.

pairun needs neither, and importing them would take a fifth of the time of all in every init phase.
Without the first, `requests` reads a text without a ``charset`` as UTF-8. `urllib3` asks for
versions only to switch to HTTP/2.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, cast

__all__ = ["requests", "urllib3"]

_VERSIONS = "importlib.metadata"


def version(name: str) -> str:
    """The version of an installed package."""
    import importlib.metadata

    return importlib.metadata.version(name)


@contextlib.contextmanager
def _with(replaced: Mapping[str, ModuleType | None]) -> Iterator[None]:
    """Replace packages; None makes their import fail (Language Reference, 5.3.1)."""
    modules = cast("dict[str, Any]", sys.modules)
    kept = {name: modules[name] for name in replaced if name in modules}
    modules.update(replaced)
    try:
        yield
    finally:
        for name in replaced:
            del modules[name]
        modules.update(kept)


def _light() -> dict[str, ModuleType | None]:
    """What to import instead of the packages."""
    versions = ModuleType(_VERSIONS)
    vars(versions)["version"] = version
    return {"chardet": None, "charset_normalizer": None, _VERSIONS: versions}


warnings.filterwarnings("ignore", "Unable to find acceptable character detection dependency")
with _with(_light()):
    import requests
    import urllib3

"""A KRM function's input: a list of manifests, and a configuration with the command's options.

Source: the KRM Functions Specification v1 (kubernetes-sigs/kustomize, cmd/config/docs/api-conventions).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

from pairun.errors import PairunError, nearest
from pairun.inject.tree import Mapping, Tree

KIND = "ResourceList"
_API_VERSION = "config.kubernetes.io/v1"
_FLAGS = ("barrier", "events", "remove", "ssh", "diagnose")
"""Options without a value."""


def is_resource_list(tree: Tree) -> bool:
    """Whether a text is the input of a KRM function."""
    root = tree.documents[0] if len(tree.documents) == 1 else None
    kind = root.get("kind") if isinstance(root, Mapping) else None
    return kind is not None and kind.plain() == KIND


def options_of(tree: Tree, names: Collection[str]) -> list[str]:
    """The options of a function's configuration, as on a command line.

    ``spec`` has the long options in camel case: ``podGroup: mine`` is ``--pod-group mine``, a list
    repeats the option, and a mapping gives pairs.

    Raises:
        PairunError: the configuration has another form.
    """
    root = tree.documents[0]
    config = root.get("functionConfig") if isinstance(root, Mapping) else None
    spec = config.get("spec") if isinstance(config, Mapping) else None
    data = spec.plain() if isinstance(spec, Mapping) else {}
    keys = [re.sub("-(.)", lambda m: m[1].upper(), name) for name in names]
    for entry in spec.entries if isinstance(spec, Mapping) else ():
        key = str(entry.key.value)
        if key not in keys and key != "<<":
            near = nearest(key, keys)
            hint = f"did you mean {near}?" if near else f"known: {', '.join(sorted(keys))}"
            raise PairunError.of("PR801", f"spec.{key} is unknown", entry.key.place, hint)
    try:
        return [word for key, value in data.items() for word in _words(key, value)]
    except ValueError as e:
        place = spec.place if spec else None
        raise PairunError.of("PR801", f"functionConfig: {e}", place) from e


def _words(key: str, value: Any) -> Iterator[str]:
    option = "--" + "".join(f"-{c.lower()}" if c.isupper() else c for c in key)
    if key in _FLAGS:
        if not isinstance(value, bool):
            raise ValueError(f"'{key}' must be true or false, not {value!r}")
        if value:
            yield option
    elif isinstance(value, dict):
        yield from (option, ",".join(f"{k}={v}" for k, v in value.items()))
    elif isinstance(value, list):
        for item in value:
            yield from (option, str(item))
    elif isinstance(value, str | int) and not isinstance(value, bool):
        yield from (option, str(value))
    else:
        raise ValueError(f"'{key}' must be a text or a list")

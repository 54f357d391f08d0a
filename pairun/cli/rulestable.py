"""Caches the diagnosis rules between calls.

Reading the rules and finding the words in their expressions takes longer than most diagnoses.
Therefore the table of the built-in rules is in the user's cache; other roots are always read.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import pairun
from pairun.base.folder import open_regular
from pairun.base.foreignjson import parse_record
from pairun.base.paths import built_in_folder
from pairun.diagnose.table import Table
from pairun.secrets.vault import Vault

_FOLDERS = ("diagnosis", "pairun/playbook", "pairun/diagnose")
_MAX_BYTES = 16 << 20


def rules_table(roots: Sequence[str], env: Mapping[str, str], vault: Vault) -> Table:
    """The table of rules of the built-in root and other roots; prints problems of rules.

    Args:
        roots: folders given with ``--root``.
        env: the environment: ``PAIRUN_PATH`` and ``PAI_CONFIG_DIR`` add roots, ``XDG_CACHE_HOME``
            holds the cache.
        vault: masks what is printed.

    Raises:
        PairunError: a folder is not a content root.
    """
    built_in_alone = not roots and not env.get("PAIRUN_PATH") and not env.get("PAI_CONFIG_DIR")
    made_of = _made_of() if built_in_alone else ""
    path = _cache_file(env)
    if made_of and (data := _kept(path, made_of)) is not None:
        return Table(data)
    # imported here, because reading rules needs YAML
    from pairun.errors import Problems
    from pairun.playbook.content import open_content
    from pairun.playbook.rules import read_rules
    from pairun.report.problems import print_problems

    problems = Problems()
    data = read_rules(open_content(roots, env), problems).data()
    print_problems(problems, vault)
    if made_of:
        _keep(path, made_of, data)
    return Table(data)


def _made_of() -> str:
    """What the table depends on: version, files of rules, and the code that reads them."""
    root = built_in_folder()
    parts = [pairun.__version__, root]
    for folder in _FOLDERS:
        inner = os.path.join(root, folder)
        if not os.path.isdir(inner):
            # in a wheel the code is above the built-in root
            inner = os.path.join(os.path.dirname(root), os.path.basename(folder))
        with contextlib.suppress(OSError), os.scandir(inner) as entries:
            for entry in sorted(entries, key=lambda e: e.name):
                if entry.name.endswith((".yaml", ".py")):
                    status = entry.stat()
                    parts.append(f"{entry.name} {status.st_size} {status.st_mtime_ns}")
    return "\n".join(parts)


def _cache_file(env: Mapping[str, str]) -> str:
    folder = env.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(folder, "pairun", "rules.json")


def _kept(path: str, made_of: str) -> dict[str, Any] | None:
    """The cached table; None if it is missing, outdated or owned by another user."""
    try:
        with open(open_regular(path, os.O_RDONLY), "rb") as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                return None
            kept = parse_record(file.read(_MAX_BYTES))
    except OSError:
        return None
    if kept is None or kept.get("made_of") != made_of:
        return None
    data = kept.get("table")
    return data if isinstance(data, dict) else None


def _keep(path: str, made_of: str, data: Mapping[str, Any]) -> None:
    """Cache a table for the next call; does nothing if the cache cannot be written."""
    part = f"{path}.{os.getpid()}"
    with contextlib.suppress(OSError):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(part, "x", encoding="utf-8") as file:
            json.dump({"made_of": made_of, "table": data}, file, separators=(",", ":"))
        os.replace(part, path)

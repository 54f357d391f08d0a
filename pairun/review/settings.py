"""The inputs of a review besides roots and jobs: the cluster's init plugins, the kind of Pod."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from pairun.base.paths import DEFAULT_CONFIG_DIR, DEFAULT_PAI_DIR
from pairun.errors import Problem, Problems
from pairun.job.checks.gracetime import PodGrace
from pairun.module import Phase
from pairun.playbook.document.reading import Node
from pairun.playbook.document.texts import decode, load_bytes
from pairun.playbook.initplugins import InitPlugins
from pairun.playbook.specs import PHASES


class Settings(NamedTuple):
    """A review's inputs besides content roots and job.

    Attributes:
        init_plugins: the cluster's init plugins, which replace the init playbook's tasks; or None.
        plain: whether the job is a plain Pod.
        engine: what this Pod's engine changes, in addition to every plain Pod's changes; or None.
        grace: the Pod's own grace time, which replaces the playbook's; None if unknown.
        phases: the phases to show.
        warnings: warnings about the settings themselves.
    """

    init_plugins: InitPlugins | None = None
    plain: bool = False
    engine: Node | None = None
    grace: PodGrace | None = None
    phases: tuple[Phase, ...] = PHASES
    warnings: tuple[Problem, ...] = ()


NO_SETTINGS = Settings()


def read_settings(path: str | None) -> Settings:
    """Read the cluster's init plugins: from a file, else from where a Pod would read them.

    Raises:
        PairunError: they cannot be read, or are not valid.
    """
    if path is None and not _may_be_set(os.environ):
        return NO_SETTINGS
    from pairun.openpai.podconfig import PodConfig

    problems = Problems()
    config = PodConfig(env=os.environ, pai_dir=DEFAULT_PAI_DIR, problems=problems)
    source = config.init() if path is None else decode(load_bytes(path), path, "cluster")
    if source is None:
        return NO_SETTINGS
    from pairun.openpai.initconfig import read_init_config

    listed = read_init_config(source, config.init_dir(), problems)
    problems.raise_errors()
    return Settings(init_plugins=listed, warnings=tuple(problems))


def _may_be_set(env: Mapping[str, str]) -> bool:
    """Whether `PodConfig` may find settings; elsewhere, nothing that reads them is imported."""
    folders = (DEFAULT_CONFIG_DIR, os.path.join(DEFAULT_PAI_DIR, "config"))
    return bool(env.get("INIT_CONFIG") or env.get("PAI_CONFIG_DIR")) or any(
        map(os.path.lexists, folders)
    )

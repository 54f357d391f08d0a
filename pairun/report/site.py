"""Builds the documentation as a site, with MkDocs, from the pages that pairun contains."""

from __future__ import annotations

import logging
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from pairun.base.paths import built_in_folder
from pairun.errors import PairunError, Problem

_MARK = ".pairun-site"
"""An empty file in each site that pairun wrote; only folders with it are replaced."""


def build_site(folder: pathlib.Path) -> pathlib.Path:
    """Write the documentation site; a broken link is an error.

    Args:
        folder: a new or empty folder, or an earlier site, which pairun replaces.

    Returns:
        The path of the first page.

    Raises:
        PairunError: MkDocs is not installed, the folder holds other files or cannot be written,
            or a page has a problem (PR813).
    """
    try:
        from mkdocs.commands.build import build
        from mkdocs.config import load_config
        from mkdocs.exceptions import MkDocsException
    except ImportError as e:
        hint = "install it: pip install 'pairun[docs]'"
        raise PairunError(Problem("PR813", f"the site needs MkDocs: {e}", hint=hint)) from e
    if folder.exists() and not _may_replace(folder):
        hint = "name a new or an empty folder"
        raise PairunError(
            Problem("PR813", f"{folder} contains files that are not a site", hint=hint)
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Build the site in a folder next to it and rename that, so that it is never incomplete.
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".pairun-site-") as beside:
            built = pathlib.Path(beside, "site")
            with _warnings() as warnings:
                try:
                    config = load_config(
                        str(pathlib.Path(built_in_folder(), "mkdocs.yml")),
                        site_dir=str(built),
                        strict=True,
                    )
                    build(config)
                except MkDocsException as e:
                    texts = warnings or [str(e)]
                    raise PairunError(*(Problem("PR813", text) for text in texts)) from e
            (built / _MARK).touch()
            built.chmod(0o777 & ~_umask())
            if folder.exists():
                shutil.rmtree(folder)
            built.rename(folder)
    except OSError as e:
        raise PairunError(Problem("PR813", f"{folder} cannot be written: {e.strerror}")) from e
    return folder / "index.html"


def _may_replace(folder: pathlib.Path) -> bool:
    if not folder.is_dir() or folder.is_symlink():
        return False
    return (folder / _MARK).is_file() or not any(folder.iterdir())


def _umask() -> int:
    umask = os.umask(0o022)
    os.umask(umask)
    return umask


@contextmanager
def _warnings() -> Iterator[list[str]]:
    """Collect MkDocs' warnings while the body runs; MkDocs itself prints none."""
    texts: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            texts.append(record.getMessage())

    logger = logging.getLogger("mkdocs")
    handler = Collector(logging.WARNING)
    propagates, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield texts
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagates

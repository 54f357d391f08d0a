"""Content roots: stacked folders with modules, playbooks, plugin specs and diagnosis rules.

The built-in root is the lowest. The folders of ``PAIRUN_PATH``, then those of ``--root``, then the
files in ``PAI_CONFIG_DIR`` are above it. A higher root adds entries or replaces them by name.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import attrs

from pairun.base.paths import built_in_folder
from pairun.contract.loading import ModuleFile, class_in
from pairun.contract.sources import ModuleSource, module_paths, read_source
from pairun.errors import PairunError, Problems
from pairun.module import Module
from pairun.playbook.document.texts import decode, load_bytes
from pairun.playbook.keywords import KEYWORDS
from pairun.playbook.rootfiles import (
    FOLDERS,
    PLAYBOOK_FILES,
    PLUGIN_FOLDERS,
    RULES_FOLDER,
    names_in,
    not_a_root,
    plugin_folders_in,
)

if TYPE_CHECKING:
    from pairun.playbook.document.reading import Node


@attrs.frozen(kw_only=True)
class Root:
    """One content root.

    Attributes:
        layer: ``built-in`` or ``cluster``.
        flat: the playbooks are in the folder itself (a mounted ConfigMap).
    """

    path: str
    layer: str
    flat: bool = False

    def files(self, folder: str) -> dict[str, str]:
        """Name to path of the YAML files in one folder."""
        where = self.path if self.flat else os.path.join(self.path, folder)
        if self.flat and folder != "playbooks":
            return {}
        try:
            names = sorted(os.listdir(where))
        except OSError:
            return {}
        files = {
            n.removesuffix(".yaml"): os.path.join(where, n)
            for n in names
            if n.endswith(".yaml") and not n.startswith(("_", "."))
        }
        return {n: p for n, p in files.items() if not self.flat or n in PLAYBOOK_FILES}

    def modules(self) -> dict[str, str]:
        """Name to path of the modules: files or folders.

        Raises:
            PairunError: a module exists in both forms.
        """
        return {} if self.flat else module_paths(os.path.join(self.path, "modules"))

    def ignored(self) -> list[str]:
        """The files of the root's folders that pairun does not read, such as ``playbooks/int.yaml``."""
        if self.flat:
            return []  # a ConfigMap may hold files of other programs
        read = {
            *self.modules().values(),
            *plugin_folders_in(os.path.join(self.path, PLUGIN_FOLDERS)),
        }
        for folder in ("playbooks", "plugin_specs", RULES_FOLDER):
            files = self.files(folder)
            read |= {p for n, p in files.items() if folder != "playbooks" or n in PLAYBOOK_FILES}
        listed = (os.path.join(f, n) for f in FOLDERS for n in names_in(os.path.join(self.path, f)))
        return [
            path
            for path in listed
            if not os.path.basename(path).startswith(("_", "."))
            and os.path.join(self.path, path) not in read
        ]

    def source(self, name: str, path: str) -> ModuleSource:
        """The source of a module or of a plugin folder, read once.

        Raises:
            PairunError: it cannot be read.
        """
        if path not in self._sources:
            self._sources[path] = read_source(name, path)
        return self._sources[path]

    @cached_property
    def _sources(self) -> dict[str, ModuleSource]:
        return {}

    def digest(self) -> str:
        """The first 12 hex digits of the SHA-256 over names and contents, read once."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        sha = hashlib.sha256()
        for name, path in self.modules().items():
            sha.update(f"modules/{name}\0{self.source(name, path).sha256()}\0".encode())
        for folder in ("playbooks", "plugin_specs", "diagnosis"):
            for name, path in self.files(folder).items():
                sha.update(f"{folder}/{name}\0".encode() + load_bytes(path) + b"\0")
        for path in [] if self.flat else plugin_folders_in(os.path.join(self.path, PLUGIN_FOLDERS)):
            name = os.path.basename(path)
            digest = self.source(name, path).sha256()
            sha.update(f"{PLUGIN_FOLDERS}/{name}\0{digest}\0".encode())
        return sha.hexdigest()[:12]


def built_in_root() -> Root:
    """The root that is part of pairun: below the package in a wheel, else in the checkout."""
    return Root(path=built_in_folder(), layer="built-in")


class Content:
    """The stacked roots.

    Args:
        roots: lowest first.
    """

    def __init__(self, roots: Sequence[Root]) -> None:
        self.roots = tuple(roots)
        self._module_files: dict[str, ModuleFile] = {}
        self._classes: dict[str, type[Module]] = {}
        self._documents: dict[str, Node] = {}

    @cached_property
    def modules(self) -> Mapping[str, tuple[str, Root]]:
        """Module name to its path and root."""
        return self._stack((root.modules(), root) for root in self.roots)

    @cached_property
    def specs(self) -> Mapping[str, tuple[str, Root]]:
        """Plugin name to its spec's file and root."""
        return self._stack((root.files("plugin_specs"), root) for root in self.roots)

    @staticmethod
    def _stack(layers: Iterable[tuple[Mapping[str, str], Root]]) -> dict[str, tuple[str, Root]]:
        stacked: dict[str, tuple[str, Root]] = {}
        for paths, root in layers:
            for name, path in paths.items():
                if name in KEYWORDS:
                    message = f"{path}: '{name}' is a keyword, so nothing else may be called that"
                    raise PairunError.of("PR213", message)
                stacked[name] = (path, root)
        return stacked

    def playbooks(self, name: str, problems: Problems | None = None) -> list[Node]:
        """The documents of that name (``init``, ``runtime``, ``policy``), lowest root first.

        Args:
            problems: takes the errors of files that cannot be read, instead of an exception.
        """
        playbooks = []
        for root in self.roots:
            if (path := root.files("playbooks").get(name)) is None:
                continue
            try:
                playbooks.append(self.document(path, root))
            except PairunError as e:
                if problems is None:
                    raise
                problems.extend(e.problems)
        return playbooks

    def own(self, path: str) -> tuple[str, Root] | None:
        """The file that a path leads to if it belongs to a root, and that root."""
        for root in self.roots:
            for folder in ("playbooks", "plugin_specs", "diagnosis"):
                for each in root.files(folder).values():
                    if os.path.realpath(each) == os.path.realpath(path):
                        return each, root
        return None

    def document(self, path: str, root: Root) -> Node:
        """A YAML file of a root, read once."""
        if path not in self._documents:
            # `pairun --version` needs only digests, so it does not import YAML.
            from pairun.playbook.document.reading import read_text

            # Show built-in files by their path in the project, not by their path on this disk.
            shown = os.path.relpath(path, root.path) if root.layer == "built-in" else path
            source = decode(load_bytes(path), shown, root.layer)
            self._documents[path] = read_text(source)
        return self._documents[path]

    def concealed(self) -> frozenset[str]:
        """The secrets in the files read so far."""
        sources = (d.place.source for d in self._documents.values())
        return frozenset().union(*(s.concealed for s in sources))

    def module(self, name: str) -> type[Module]:
        """The class of a module, loaded once."""
        if name not in self._classes:
            path, root = self.modules[name]
            self._classes[name] = class_in(name, root.source(name, path))
        return self._classes[name]

    def module_file(self, name: str) -> ModuleFile:
        """A module's path and digest, for a plan; read once."""
        if name not in self._module_files:
            path, root = self.modules[name]
            built_in = root.layer == "built-in"
            self._module_files[name] = ModuleFile(
                # Built-in modules have other paths in the user's container.
                path=os.path.relpath(path, root.path) if built_in else path,
                sha256=root.source(name, path).sha256(),
                built_in=built_in,
            )
        return self._module_files[name]


def open_content(extra: Sequence[str], env: Mapping[str, str]) -> Content:
    """The content roots of this process.

    Args:
        env: ``PAIRUN_PATH`` (folders separated by ``:``) and ``PAI_CONFIG_DIR`` are read.

    Raises:
        PairunError: a folder is not a content root.
    """
    roots = [built_in_root()]
    for path in [*filter(None, env.get("PAIRUN_PATH", "").split(":")), *extra]:
        if problem := not_a_root(path):
            raise PairunError(problem)
        roots.append(Root(path=path, layer="cluster"))
    config = env.get("PAI_CONFIG_DIR")
    if config and not os.path.isdir(config):
        message = f"PAI_CONFIG_DIR: {config} is not a folder"
        raise PairunError.of("PR601", message, hint="correct the variable, or unset it")
    if config:
        flat = Root(path=config, layer="cluster", flat=True)
        if flat.files("playbooks"):
            roots.append(flat)
    return Content(roots)

"""Plugin folders in OpenPAI's form: ``plugins/NAME/`` with a ``desc.yaml`` and a program for init."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pairun.errors import PairunError, Problem, Problems
from pairun.module import Secret
from pairun.playbook.content import Content, Root, built_in_root
from pairun.playbook.document.checking import violations
from pairun.playbook.document.reading import Node, node_of
from pairun.playbook.expressions.views import Unknown
from pairun.playbook.policy import Policy, read_policy
from pairun.playbook.rootfiles import DESCRIPTION, plugin_folders_in

_TASKS = os.path.join("plugin_specs", "_folder.yaml")
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "init-script": {"type": "string", "minLength": 1}},
}


class PluginFolder(NamedTuple):
    """One plugin."""

    path: str
    root: Root


class FolderPlugins(NamedTuple):
    """The plugin folders of a cluster's content roots that the policy allows.

    Attributes:
        folders: by the plugin's name; without folders that a spec of the same or a higher root
            replaces.
        unused: a warning for each unused folder.
    """

    folders: Mapping[str, PluginFolder]
    unused: tuple[Problem, ...]

    def tasks(
        self, name: str, content: Content, problems: Problems, *, required: bool
    ) -> Node | None:
        """The spec that turns a folder into tasks; None, with problems, if the folder has errors.

        Args:
            required: report a missing program as an error; else as a warning, and its task fails.
        """
        try:
            description = self._description(name, content)
        except PairunError as e:
            problems.extend(e.problems)
            return None
        wrong = list(check_folder(description, self.folders[name].path))
        if not required:
            wrong = [p._replace(severity="warning") if p.id == "PR108" else p for p in wrong]
        problems.extend(wrong)
        if any(p.severity == "error" for p in wrong):
            return None
        if description.get("init-script") is None:
            return node_of({}, description.place)
        root = built_in_root()
        return content.document(os.path.join(root.path, _TASKS), root)

    def scope(
        self, name: str, number: int, content: Content, written: Mapping[str, str | Secret] | None
    ) -> dict[str, Any]:
        """The value of ``plugin`` in the expressions of a folder's tasks.

        Args:
            number: the plugin's position in the job.
            written: name to text of the scripts that the programs wrote; None before they run.
        """
        scripts = {"pre": f"plugin_pre{number}.sh", "post": f"plugin_post{number}.sh"}
        later = Unknown("what a program decides in init")
        texts = {k: later if written is None else written.get(f, "") for k, f in scripts.items()}
        return {
            "folder": self.folders[name].path,
            "program": self.program(name, content),
            **{f"{k}_script": file for k, file in scripts.items()},
            **texts,
        }

    def check(self, content: Content, problems: Problems) -> None:
        """Report every error of the folders."""
        for name, folder in self.folders.items():
            try:
                problems.extend(check_folder(self._description(name, content), folder.path))
            except PairunError as e:
                problems.extend(e.problems)

    def program(self, name: str, content: Content) -> str:
        """The path of a folder's program within the folder; empty if its file names none.

        Raises:
            PairunError: the file cannot be read.
        """
        program = self._description(name, content).get("init-script")
        return str(program.value) if program else ""

    def _description(self, name: str, content: Content) -> Node:
        folder = self.folders[name]
        return content.document(os.path.join(folder.path, DESCRIPTION), folder.root)


def check_folder(description: Node, folder: str) -> Iterator[Problem]:
    """Yield a problem for every error of a plugin folder."""
    if wrong := list(violations(description, _SCHEMA)):
        yield from wrong
    elif (program := description.get("init-script")) is None:
        message = "the plugin does nothing: no init-script"
        hint = "add init-script, the program's name, or remove the folder"
        yield Problem("PR912", message, description.place, hint, "warning")
    elif not os.path.isfile(os.path.join(folder, program.value)):
        message = f"the program {program.value!r} is not in {folder}"
        yield Problem("PR108", message, program.place, "correct init-script, or add the program")


def folders_in_force(content: Content) -> FolderPlugins:
    """The plugin folders that the content roots' policy allows."""
    ignored = Problems()
    return folder_plugins(content, read_policy(content.playbooks("policy", ignored), ignored))


def folder_plugins(content: Content, policy: Policy) -> FolderPlugins:
    """Find the plugin folders of a cluster's content roots."""
    folders: dict[str, PluginFolder] = {}
    unused: list[Problem] = []
    order = list(content.roots)
    for folder in _all_folders(content, policy.plugin_paths()):
        name = os.path.basename(folder.path)
        spec = content.specs.get(name)
        if not policy.may_bring_plugins(folder.root.path):
            unused.append(
                _unused(folder, f"add {folder.root.path} to the policy's 'plugin_folders'")
            )
        elif spec is not None and order.index(spec[1]) >= order.index(folder.root):
            unused.append(_unused(folder, f"pairun uses {spec[0]}: remove one of them"))
        else:
            folders[name] = folder
    return FolderPlugins(folders=folders, unused=tuple(unused))


def _unused(folder: PluginFolder, hint: str) -> Problem:
    return Problem("PR912", f"pairun does not read {folder.path}", None, hint, "warning")


def _all_folders(content: Content, paths: list[str]) -> Iterator[PluginFolder]:
    """Every plugin folder, the lowest root's first; an absolute path belongs to the highest root."""
    roots = [r for r in content.roots if r.layer != "built-in"]
    for root in roots:
        for path in paths:
            if not os.path.isabs(path) or root is roots[-1]:
                for folder in plugin_folders_in(os.path.join(root.path, path)):
                    yield PluginFolder(path=folder, root=root)

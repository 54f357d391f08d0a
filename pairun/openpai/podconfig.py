"""The settings of a plain Pod: from variables, or else from files of a mounted folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence

import attrs

from pairun.base.paths import DEFAULT_CONFIG_DIR, DEFAULT_PAI_DIR
from pairun.errors import PairunError, Place, Problem, Problems, Source
from pairun.job.jsyaml import JS
from pairun.playbook.document.reading import Node, decode, read_text
from pairun.playbook.document.scalars import Dialect
from pairun.playbook.document.texts import MAX_DOCUMENT_BYTES, load_bytes
from pairun.volume.door import Door


class PodFiles:
    """Reads the platform's files; trusts files on the shared volume only if they are mounted there.

    The user's container may write to the volume, and an init container runs again when its Pod's
    sandbox is recreated. Mounts into the volume are read-only for both.
    """

    def __init__(self, pai_dir: str, problems: Problems) -> None:
        self._door = Door(pai_dir, mounted=True)
        self._problems = problems

    def counts(self, path: str, hint: str) -> bool:
        """Whether a path exists and only the platform can have written it.

        Args:
            hint: what to do if it is not trusted.
        """
        if path not in self._door:
            return os.path.exists(path)
        if not self._door.exists(path):
            return False
        if self._door.is_from_platform(path):
            return True
        self._problems.warning(
            "PR718",
            f"{path} is ignored: it is on the shared volume, where the user's container can write",
            None,
            hint,
        )
        return False

    def is_folder(self, path: str) -> bool:
        """Whether a trusted path is a folder."""
        return os.path.isdir(path) if path not in self._door else self._names(path) is not None

    def names(self, path: str) -> list[str]:
        """The sorted names in a trusted folder.

        Raises:
            PairunError: it cannot be listed.
        """
        try:
            return sorted(os.listdir(path)) if path not in self._door else self._names(path) or []
        except OSError as e:
            raise _unreadable(path, e) from e

    def _names(self, path: str) -> list[str] | None:
        try:
            return self._door.names(path)
        except NotADirectoryError:
            return None

    def load(self, path: str, limit: int = MAX_DOCUMENT_BYTES) -> bytes:
        """The content of a trusted file.

        Args:
            limit: the largest size allowed, in bytes.

        Raises:
            PairunError: it cannot be read.
        """
        if path not in self._door:
            return load_bytes(path, limit)
        try:
            return self._door.read(path, limit)
        except OSError as e:
            raise _unreadable(path, e) from e


def _unreadable(path: str, error: OSError) -> PairunError:
    return PairunError.of("PR108", f"{path} cannot be read: {error.strerror}")


INIT_DIRS = ("/opt/pairun/init.d", "/user/local/pai/init.d")
EXIT_SPEC = "runtime-exit-spec.yaml"


def with_config_dir(env: Mapping[str, str]) -> dict[str, str]:
    """The environment with ``PAI_CONFIG_DIR`` set to the folder that the platform mounts.

    Args:
        env: of the init container; it may already set ``PAI_CONFIG_DIR``.
    """
    if env.get("PAI_CONFIG_DIR") or not os.path.isdir(DEFAULT_CONFIG_DIR):
        return dict(env)
    return {**env, "PAI_CONFIG_DIR": DEFAULT_CONFIG_DIR}


@attrs.frozen(kw_only=True)
class PodConfig:
    """Finds the settings of this Pod.

    Attributes:
        dialect: the dialect of YAML of the cluster's REST server.
    """

    env: Mapping[str, str]
    pai_dir: str
    problems: Problems
    dialect: Dialect = JS

    @property
    def files(self) -> PodFiles:
        """Reads the files that the platform mounts."""
        return PodFiles(self.pai_dir, self.problems)

    def init(self) -> Source | None:
        """The list of init plugins: ``INIT_CONFIG``, or else ``init_plugins.yaml``."""
        return self._setting("INIT_CONFIG", "init_plugins.yaml", "cluster")

    def runtime(self) -> Source | None:
        """Commands and plugins: ``RUNTIME_CONFIG``, or else ``runtime_plugin.yaml``."""
        return self._setting("RUNTIME_CONFIG", "runtime_plugin.yaml", "job")

    def exit_spec(self) -> Source | None:
        """The description of exit codes; None if there is none.

        Raises:
            PairunError: it cannot be read.
        """
        path = self.find(EXIT_SPEC)
        if path is not None and self.files.is_folder(path):
            # A volume mounted without `subPath` is a folder that contains the file.
            path = os.path.join(path, EXIT_SPEC)
            if EXIT_SPEC not in self.files.names(os.path.dirname(path)):
                hint = "give the key of the ConfigMap this name"
                raise PairunError.of("PR716", f"there is no {path}", None, hint)
        return None if path is None else decode(self.files.load(path), path, "cluster")

    def init_dir(self) -> str | None:
        """The folder of the operator's own init programs; never a folder on the shared volume."""
        given = self.env.get("PAI_INIT_DIR")
        if given and not os.path.isdir(given):
            hint = "correct the variable, or unset it"
            raise PairunError.of("PR716", f"PAI_INIT_DIR: {given} is not a folder", None, hint)
        if given and self.files.counts(given, _HINT):
            return given
        image = DEFAULT_PAI_DIR
        # A volume mounted there hides the image's folder.
        hidden = self.pai_dir != image or os.path.ismount(image)
        dirs = INIT_DIRS if hidden else (*INIT_DIRS, os.path.join(image, "init.d"))
        return next((d for d in dirs if os.path.isdir(d)), None)

    def find(self, *names: str) -> str | None:
        """The first trusted file or folder with one of these names, or None."""
        for name in names:
            for folder in self._folders():
                path = os.path.join(folder, name)
                if self.files.counts(path, _HINT):
                    return path
        return None

    def _folders(self) -> Sequence[str]:
        given = self.env.get("PAI_CONFIG_DIR")
        return (given,) if given else (DEFAULT_CONFIG_DIR, os.path.join(self.pai_dir, "config"))

    def _setting(self, variable: str, file: str, layer: str) -> Source | None:
        if (text := self.env.get(variable, "")).strip():
            return Source(variable, layer, text)
        path = self.find(file)
        return None if path is None else decode(self.files.load(path), path, layer)


_HINT = "mount it, or set PAI_CONFIG_DIR to a folder of the image"


# --- reading -------------------------------------------------------------------------------------


def read_setting(source: Source, keys: Sequence[str], dialect: Dialect) -> Node:
    """Read the text of a setting.

    Args:
        keys: the keys that it may contain.
        dialect: the dialect of its scalars.

    Raises:
        PairunError: it is not YAML; for folded text, the error shows how to write it.
    """
    try:
        return read_text(source, dialect)
    except PairunError as e:
        folded = next(_folds(source.text, keys), None)
        if folded is None:
            raise
        line = source.text.count("\n", 0, folded) + 1
        place = Place(source, line, folded - source.text.rfind("\n", 0, folded))
        message = f"{source.file} has lost its line ends: `>` and `>-` join the lines of a block"
        hint = f"begin the block with `|`, which keeps them:\n{_corrected(source, keys)}"
        raise PairunError.of("PR714", message, place, hint) from e


def _folds(text: str, keys: Sequence[str]) -> Iterator[int]:
    """The positions of removed line ends: before a key, and before the dash of an item."""
    names = "|".join(map(re.escape, keys))
    pattern = rf"(?<=[^\s,{{])[ \t]+(?:(?:{names})[ \t]*:(?=\s|$)|-[ \t]+(?=[\w'\"]))"
    for match in re.finditer(pattern, text):
        begin = text.rfind("\n", 0, match.start()) + 1
        # Count a dash only after a key, the end of a list or another item.
        dash = match[0].lstrip().startswith("-")
        if not dash or re.search(r"(:|\]|^\s*-|[ \t]-[ \t].*)$", text[begin : match.start()]):
            yield match.end() - len(match[0].lstrip())


def _corrected(source: Source, keys: Sequence[str]) -> str:
    """The text as it was probably meant, in the form for the Pod's manifest."""
    text, begin, out = source.text, 0, []
    for at in _folds(text, keys):
        out.append(text[begin:at].rstrip())
        begin = at
    lines = "\n".join([*out, text[begin:]]).splitlines()[:_SHOWN_LINES]
    return "\n".join(["      value: |", *(f"        {line}" for line in lines)])


_SHOWN_LINES = 8


# --- secrets -------------------------------------------------------------------------------------

_SECRETS = ("secret.yaml", "secrets.yaml")


def read_secrets(config: PodConfig) -> Node | None:
    """The secrets of the Pod: from a file, or from a Secret mounted as a folder of files per key.

    Raises:
        PairunError: they cannot be read; its message contains no part of them.
    """
    path = config.find(*_SECRETS)
    if path is None:
        return None
    files = config.files
    if not files.is_folder(path):
        return _secrets_document(path, files)
    keys = [n for n in files.names(path) if not n.startswith(".")]
    if inner := next((n for n in keys if n in _SECRETS), None):
        return _secrets_document(os.path.join(path, inner), files)
    secrets = {}
    for key in keys:
        source = _hidden(os.path.join(path, key), files)
        place = Place(source, 1, 1)
        # Like a shell with a command's output, remove line ends: most files end with one.
        secrets[key] = Node(source.text.rstrip("\n"), place, place)
    return Node(secrets, Place(Source(path, "job", ""), 1, 1))


def _secrets_document(path: str, files: PodFiles) -> Node:
    source = _hidden(path, files)
    try:
        node = read_text(source, JS)
    except PairunError as e:
        # The reader's messages may quote the text, such as an alias.
        places = [p.place for p in e.problems]
        raise PairunError(
            *(Problem("PR716", f"{path} is not valid YAML here", place) for place in places)
        ) from None
    if node.value is not None and not isinstance(node.value, dict):
        raise PairunError.of("PR716", f"{path} must be a mapping of names to secrets", node.place)
    return node


def _hidden(path: str, files: PodFiles) -> Source:
    source = decode(files.load(path), path, "job")
    source.hide(1, source.text.count("\n") + 1)
    return source

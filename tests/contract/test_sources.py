"""What belongs to a module, and the digest of it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from pairun.contract import sources
from pairun.contract.sources import built_in_modules, module_paths, read_source
from pairun.errors import PairunError

FILES = {"__init__.py": "a", "one.py": "b", "inner/__init__.py": "c", "inner/table.json": "d"}


def make(folder: Path, files: dict[str, str]) -> str:
    """A module's folder; returns its path."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(folder)


def digest(folder: Path, files: dict[str, str]) -> str:
    """The digest of a folder with these files."""
    return read_source("m", make(folder, files)).sha256()


def refused(path: str) -> str:
    """The message of a source that cannot be read."""
    with pytest.raises(PairunError) as e:
        read_source("m", path)
    (problem,) = e.value.problems
    assert problem.id == "PR602"
    return problem.message


def test_the_digest_of_a_file_is_over_its_bytes(tmp_path: Path) -> None:
    """Anybody can compute it with sha256sum."""
    path = tmp_path / "m.py"
    path.write_bytes(b"x = 1\r\n")
    assert read_source("m", str(path)).sha256() == hashlib.sha256(b"x = 1\r\n").hexdigest()


def test_the_digest_of_a_folder_is_over_sorted_paths_and_bytes(tmp_path: Path) -> None:
    """The order in which files were made, their times and what Python caches do not count."""
    first = digest(tmp_path / "a", FILES)
    second = make(tmp_path / "b", dict(reversed(FILES.items())))
    make(tmp_path / "b", {"__pycache__/one.cpython-311.pyc": "x", "inner/__pycache__/a": "x"})
    os.utime(tmp_path / "b" / "one.py", (1, 1))
    assert read_source("m", second).sha256() == first
    framed = b"__init__.py\x001\0ainner/__init__.py\x001\0cinner/table.json\x001\0done.py\x001\0b"
    assert first == hashlib.sha256(framed).hexdigest()


@pytest.mark.parametrize(
    "files",
    [
        FILES | {"one.py": "B"},
        FILES | {"inner/table.json": ""},
        FILES | {"two.py": ""},
        {k.replace("one", "two"): v for k, v in FILES.items()},
        {k.replace("inner/t", "t"): v for k, v in FILES.items()},
        {k: v for k, v in FILES.items() if k != "one.py"},
        FILES | {"one.py": "b" + "two.py\x001\0b"},
    ],
)
def test_any_change_changes_the_digest(tmp_path: Path, files: dict[str, str]) -> None:
    """A file that changes, comes, goes or gets another name is another module."""
    assert digest(tmp_path / "a", FILES) != digest(tmp_path / "b", files)


def test_a_link_in_a_folder_is_refused(tmp_path: Path) -> None:
    """The digest covers bytes, and a link leads to bytes elsewhere."""
    path = make(tmp_path / "m", FILES)
    (tmp_path / "m" / "inner" / "link.py").symlink_to(tmp_path / "m" / "one.py")
    assert refused(path).endswith(f"{path}/inner/link.py: it is a symbolic link")
    (tmp_path / "m" / "inner" / "link.py").unlink()
    (tmp_path / "m" / "sub").symlink_to(tmp_path, target_is_directory=True)
    assert refused(path).endswith(f"{path}/sub: it is a symbolic link")
    (tmp_path / "m" / "sub").unlink()
    (tmp_path / "other").symlink_to(path)
    assert refused(str(tmp_path / "other")).endswith("other: it is a symbolic link")


def test_a_module_of_one_file_may_be_a_link(tmp_path: Path) -> None:
    """So Kubernetes mounts the files of a ConfigMap."""
    (tmp_path / "data").write_text("x")
    (tmp_path / "m.py").symlink_to("data")
    assert read_source("m", str(tmp_path / "m.py")).files == {"m.py": b"x"}


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    """A FIFO does not block, in a folder and in place of a file."""
    path = make(tmp_path / "m", FILES)
    os.mkfifo(tmp_path / "m" / "pipe.py")
    assert (
        refused(path)
        == f"the module m cannot be read from {path}/pipe.py: it is not a regular file"
    )
    assert "pipe.py: it is not a regular file" in refused(f"{path}/pipe.py")


def test_a_module_has_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of the wrong place is not read to its end."""
    path = make(tmp_path / "m", FILES)
    monkeypatch.setattr(sources, "MAX_ENTRIES", 4)
    assert "more than 4 files and folders" in refused(path)
    monkeypatch.setattr(sources, "MAX_ENTRIES", 5)
    monkeypatch.setattr(sources, "_MAX_BYTES", 3)
    assert "larger than 0 MiB together" in refused(path)
    monkeypatch.setattr(sources, "_MAX_BYTES", 4)
    assert len(read_source("m", path).files) == 4


def test_the_modules_of_a_folder(tmp_path: Path) -> None:
    """Files and folders with an entry count; helpers, hidden ones and other folders do not."""
    made = {"a.py": "", "b/__init__.py": "", "_c.py": "", ".d.py": "", "e/x.py": "", "f.txt": ""}
    folder = make(tmp_path, made | {"__pycache__/__init__.py": ""})
    assert module_paths(folder) == {"a": f"{folder}/a.py", "b": f"{folder}/b"}
    assert module_paths(f"{folder}/absent") == {}


def test_a_module_that_is_there_twice(tmp_path: Path) -> None:
    """Nobody could tell which of the two runs."""
    folder = make(tmp_path, {"a.py": "", "a/__init__.py": ""})
    with pytest.raises(PairunError, match=r"twice: a\.py and a/"):
        module_paths(folder)


def test_the_built_in_modules() -> None:
    """They are found by name, whichever form they have."""
    assert os.path.basename(built_in_modules()["cmd"]) == "cmd.py"

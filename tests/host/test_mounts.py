"""The mount table, and questions that a dead file server cannot hold."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairun.host import mounts
from pairun.module import Mount

PATHS = st.lists(
    st.text(st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), min_size=1),
    max_size=4,
).map(lambda names: "/" + "/".join(names))


def escaped(text: str) -> str:
    """As the kernel writes a path (fs/proc_namespace.c): space, tab, newline, backslash, hash."""
    return "".join(f"\\{ord(c):03o}" if c in " \t\n\\#" else c for c in text)


@given(target=PATHS, source=PATHS, root=PATHS, read_only=st.booleans(), tags=st.integers(0, 3))
def test_a_line_of_the_table_is_read_as_it_was_written(
    target: str, source: str, root: str, tags: int, *, read_only: bool
) -> None:
    """Whatever stands in the paths, and however many optional fields there are."""
    flags = "ro,nosuid" if read_only else "rw,relatime"
    optional = "".join(f" shared:{n}" for n in range(tags))
    line = (
        f"36 35 98:0 {escaped(root)} {escaped(target)} {flags}{optional} - nfs4 "
        f"{escaped(source)} rw,errors=continue\n"
    )
    assert mounts.parse_mount(os.fsencode(line)) == Mount(target, source, root, "nfs4", read_only)


def test_a_file_system_that_is_read_only_as_a_whole_counts() -> None:
    """The flag may stand with the mount or with the file system."""
    assert mounts.parse_mount(b"1 2 0:3 / /x rw - iso9660 /dev/sr0 ro").read_only


def test_this_machines_table_is_read() -> None:
    """The root and the table's own file system are in it."""
    found = {m.target: m.kind for m in mounts.mounts()}
    assert "/" in found
    assert found["/proc"] == "proc"


def test_what_answers_is_answered() -> None:
    """The bytes that are free, a path without links, an error with its number."""
    assert mounts.free_bytes("/proc", 10) == 0
    assert mounts.real_path("/proc/self/../self/cwd/.", 10)
    with pytest.raises(FileNotFoundError):
        mounts.free_bytes("/nothing/here", 10)

"""The file of storage_config."""

from __future__ import annotations

import json

from tests.modules.conftest import Harness
from tests.modules.mount_storage.conftest import mounted, needs_root


@needs_root
def test_the_storages_of_a_file_are_mounted(harness: Harness) -> None:
    """They are those that storage_config left, and names are filled in here."""
    (harness.tmp / "source" / "al").mkdir(parents=True)
    (harness.tmp / "source" / "al" / "a").write_text("1")
    storage = {"type": "local", "source": f"{harness.tmp}/source", "path": f"{harness.tmp}/mnt"}
    (harness.tmp / "file").write_text(json.dumps([{**storage, "subdir": "%USER"}]))
    harness.run("mount_storage", {"file": "{tmp}/file", "user": "al"})
    assert (harness.tmp / "mnt" / "a").read_text() == "1"


@needs_root
def test_variables_in_a_file_are_filled_in(harness: Harness) -> None:
    """As the shell did that once mounted them; one that is not set is named."""
    (harness.tmp / "source" / "al").mkdir(parents=True)
    storage = {"type": "local", "source": f"{harness.tmp}/source/${{PAI_USER_NAME}}",
               "path": f"{harness.tmp}/$WHERE"}  # fmt: skip
    (harness.tmp / "file").write_text(json.dumps([storage]))
    failure = harness.run("mount_storage", {"file": "{tmp}/file"}, {"WHERE": "mnt"}).failure
    assert failure is not None
    assert "the variable PAI_USER_NAME in 'source' is not set" in failure.message
    env = {"WHERE": "mnt", "PAI_USER_NAME": "al"}
    harness.run("mount_storage", {"file": "{tmp}/file"}, env)
    assert mounted(harness) == ["/mnt"]

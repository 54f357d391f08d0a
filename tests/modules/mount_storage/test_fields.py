"""The fields of a storage."""

from __future__ import annotations

from typing import Any

import pytest

from pairun.module import Secret
from tests.modules.conftest import Harness
from tests.modules.mount_storage.conftest import LOCAL, NFS, S3

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"type": "ntfs", "path": "/x"}, "'type' must be one of nfs, samba"),
    ({"path": "/x"}, "'type' must be one of"),
    ({"type": "nfs", "path": "/x"}, "'server' is missing"),
    ({"type": "local", "source": "/x"}, "'path' is missing"),
    ({**NFS, "password": "x"}, "a storage of type nfs has no 'password'"),
    ({**NFS, "path": "mnt"}, "'path' must be an absolute path"),
    ({**NFS, "path": "/"}, "'path' must be an absolute path below /"),
    ({**NFS, "path": "/mnt/../etc"}, "without '..'"),
    ({**NFS, "subdir": "../other"}, "'subdir' must not contain '..'"),
    ({**NFS, "subdir": Secret("x")}, "'subdir' shows in the mount table"),
    ({**NFS, "server": "host:/x,soft"}, "'server' must be only a host's name or address"),
    ({**NFS, "options": "soft"}, "'options' must be a list"),
    ({**NFS, "options": ["soft,addr=1.2.3.4"]}, "without a comma"),
    ({**NFS, "options": ["addr=1.2.3.4"]}, "the option 'addr' cannot be set"),
    ({**NFS, "read_only": "yes"}, "'read_only' must be true or false"),
    ({**NFS, "export": "/a\nb"}, "'export' holds a line end"),
    ({"type": "local", "source": "data", "path": "/x"}, "'source' must be an absolute path"),
    ({"type": "samba", "server": "h", "share": "s", "password": "a\nb", "path": "/x"},
     "'password' holds a line end"),
    ({**S3, "secret_key": " x"}, "cannot hold 'secret_key'"),
    ({**S3, "secret_key": Secret('"x')}, "cannot hold 'secret_key'"),
    ({**S3, "secret_key": "a%(b)s"}, "cannot hold 'secret_key'"),
    ({"type": "hdfs", "namenode": "nn", "path": "/x"}, "'namenode' must be host:port"),
    ({"type": "azureblob", "container": "c", "account": "a", "path": "/x"},
     "'key' is missing: account and key, or sas_url"),
    ({"type": "rclone", "settings": {"user": "x"}, "path": "/x"}, "'settings' lack 'type'"),
    ({"type": "rclone", "settings": {"type": "sftp", "x]\n[y": "z"}, "path": "/x"},
     "is not the name of a setting"),
]  # fmt: skip


@pytest.mark.parametrize(("storage", "says"), WRONG, ids=[says for _, says in WRONG])
def test_a_storage_that_cannot_be_is_refused_with_the_reason(
    harness: Harness, storage: dict[str, Any], says: str
) -> None:
    """Every wrong field is named, with the storage's number, and no secret is shown."""
    sentences = [p.message for p in harness.problems("mount_storage", {"storages": [storage]})]
    assert any(says in s for s in sentences), sentences
    assert all(s.startswith("'storages' 1: ") for s in sentences)


def test_two_storages_at_one_mount_point_are_an_error(harness: Harness) -> None:
    """It is found before anything is mounted, however the path is written."""
    storages = [NFS, {**LOCAL, "path": "{tmp}//mnt/"}]
    problems = harness.problems("mount_storage", {"storages": storages})
    assert "two storages at one mount point" in problems[0].message

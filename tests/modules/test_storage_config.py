"""The module storage_config."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from pairun.host.worlds import ReviewContext
from pairun.module import Failure, Permanent, UnknownUntilRun
from tests.modules.conftest import Harness

CONFIGS = {
    "data": {
        "name": "data",
        "default": True,
        "mountInfos": [
            {"mountPoint": "/data", "server": "files", "path": "/sets", "permission": "ro"},
            {"mountPoint": "/home", "server": "files", "path": "users/%USER", "permission": "rw"},
        ],
    },
    "more": {"mountInfos": [{"mountPoint": "/more", "server": "smb"}]},
    "az": {"mountInfos": [{"mountPoint": "/az", "server": "file", "path": ""}]},
    "blob": {"mountInfos": [{"mountPoint": "/blob", "server": "blob", "path": "a/b"}]},
    "hdfs": {"mountInfos": [{"mountPoint": "/hdfs", "server": "hdfs", "path": "x"}]},
    "same": {"mountInfos": [{"mountPoint": "/data/", "server": "smb"}]},
    "proxied": {"mountInfos": [{"mountPoint": "/p", "server": "proxied"}]},
    "nowhere": {"mountInfos": [{"mountPoint": "/x", "server": "none"}]},
    "odd": {"mountInfos": [{"mountPoint": "/x", "server": "odd"}]},
    "short": {"mountInfos": [{"mountPoint": "/x", "server": "short"}]},
    "pointless": {"mountInfos": [{"server": "smb"}]},
    "empty": {"default": False},
}
SERVERS = {
    "files": {"spn": "files", "type": "nfs", "address": "10.0.0.1", "rootPath": "/export"},
    "smb": {"type": "samba", "address": "smb", "rootPath": "team", "userName": "u",
            "password": "pass,word", "domain": ""},
    "file": {"type": "azureFile", "dataStore": "acc.file.core.windows.net", "fileShare": "share",
             "accountName": "acc", "key": "azkey=="},
    "blob": {"type": "azureblob", "containerName": "c", "accountName": "acc", "key": "azkey=="},
    "hdfs": {"type": "hdfs", "namenode": "nn", "port": 9000},
    "proxied": {"type": "azurefile", "proxy": ["u@h", "azkey=="], "fileShare": "s",
                "accountName": "a", "key": "k"},
    "odd": {"type": "tape"},
    "short": {"type": "samba", "address": "smb"},
}  # fmt: skip
ALL = json.dumps(list(CONFIGS))


def api_server(secrets: Mapping[str, Mapping[str, Any]]) -> Callable[..., bytes | None]:
    """What an API server with these Secrets answers."""

    def ask_api(path: str, **_: Any) -> bytes | None:
        secret = secrets.get(path.rpartition("/")[2])
        if secret is None:
            return None
        data = {n: base64.b64encode(json.dumps(v).encode()).decode() for n, v in secret.items()}
        return json.dumps({"data": data}).encode()

    return ask_api


def run(harness: Harness, args: Mapping[str, Any], **secrets: Any) -> list[dict[str, Any]]:
    """What stands in the file afterwards."""
    path = harness.pai_dir / "storage" / "team.json"
    module: Any = harness.make("storage_config", {"path": str(path), "allowed": ALL, **args})
    found = {
        "storage-config": secrets.get("configs", CONFIGS),
        "storage-server": secrets.get("servers", SERVERS),
    }
    context = harness.world(answers={"ask_api": api_server(found)}).ctx
    if module.plan(module.probe(context)).kind == "will_change":
        module.apply(context)
    assert module.plan(module.probe(context)).kind == "no_change"
    assert path.stat().st_mode & 0o777 == 0o600
    return list(json.loads(path.read_text()))


def test_storages_are_left_as_mount_storage_takes_them(harness: Harness) -> None:
    """Every kind of server becomes a storage, and mount_storage finds nothing wrong with it."""
    found = run(harness, {"names": ["data", "more", "az", "blob", "hdfs"]})
    assert found == [
        {"type": "nfs", "path": "/data", "subdir": "sets", "read_only": True,
         "server": "10.0.0.1", "export": "/export"},
        {"type": "nfs", "path": "/home", "subdir": "users/%USER", "read_only": False,
         "server": "10.0.0.1", "export": "/export"},
        {"type": "samba", "path": "/more", "subdir": "", "read_only": False, "server": "smb",
         "share": "team", "username": "u", "password": "pass,word"},
        {"type": "azurefile", "path": "/az", "subdir": "", "read_only": False,
         "server": "acc.file.core.windows.net", "share": "share", "account": "acc",
         "key": "azkey=="},
        {"type": "azureblob", "path": "/blob", "subdir": "a/b", "read_only": False,
         "container": "c", "account": "acc", "key": "azkey=="},
        {"type": "hdfs", "path": "/hdfs", "subdir": "x", "read_only": False,
         "namenode": "nn:9000"},
    ]  # fmt: skip
    assert harness.problems("mount_storage", {"storages": found}) == []


def test_without_names_the_defaults_are_taken(harness: Harness) -> None:
    """Those among the allowed ones that say so."""
    assert [s["path"] for s in run(harness, {})] == ["/data", "/home"]


REFUSED = [
    ({"names": ["data"], "allowed": None}, "this job may not use the storage data"),
    ({"names": ["data"], "allowed": '["more"]'}, "this job may not use the storage data"),
    ({"allowed": '["more"]'}, "no storage is given, and there is no default"),
    ({"names": ["gone"], "allowed": '["gone"]'}, "there is no storage gone"),
    ({"allowed": "data"}, "'allowed' is not a JSON list"),
    ({"names": ["data", "same"]}, "two storages at one mount point: /data"),
    ({"names": ["proxied"]}, "a proxy in front of azurefile is not supported"),
    ({"names": ["nowhere"]}, "names the server none, which is not in storage-server"),
    ({"names": ["odd"]}, "is of the type tape, which cannot be mounted"),
    ({"names": ["short"]}, "'rootPath' is missing in the storage short"),
    ({"names": ["pointless"]}, "'mountPoint' is missing in the storage pointless"),
    ({"names": ["empty"]}, "has no list mountInfos"),
]


@pytest.mark.parametrize(("args", "says"), REFUSED, ids=[says for _, says in REFUSED])
def test_what_cannot_be_mounted_is_refused(
    harness: Harness, args: Mapping[str, Any], says: str
) -> None:
    """The sentence names the storage, never a password; nothing is written."""
    with pytest.raises(Permanent) as raised:
        run(harness, args)
    assert says in raised.value.message
    assert "azkey" not in f"{raised.value.message} {raised.value.hint}"
    assert not (harness.pai_dir / "storage").exists()


@pytest.mark.parametrize("value", [None, {"x": ["azkey"]}, {"x": "azkey"}])
def test_a_secret_that_is_not_there_or_something_else(harness: Harness, value: Any) -> None:
    """It is named; nothing of it is shown."""
    with pytest.raises(Failure) as raised:
        run(harness, {}, configs=value)
    assert "storage-config" in raised.value.message
    assert "azkey" not in raised.value.message


def test_a_review_asks_no_server(harness: Harness) -> None:
    """Only the run can tell."""
    module: Any = harness.make("storage_config", {"path": "/x", "allowed": ALL})
    with pytest.raises(UnknownUntilRun):
        module.probe(ReviewContext({}, str(harness.pai_dir)))

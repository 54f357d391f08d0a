"""storage_config against a real API server, with and without the right to read the secrets."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pairun.contract.arguments import build
from pairun.contract.loading import load_module
from pairun.executor.child import perform
from pairun.host.context import HostContext
from tests.node.api import Api

ROOT = Path(__file__).parents[2]
MODULE = load_module("storage_config", str(ROOT / "modules" / "storage_config.py"))
CONFIG = {"default": True, "mountInfos": [{"mountPoint": "/data", "server": "files"}]}
SERVER = {"type": "samba", "address": "files", "rootPath": "team", "password": "sesame-1"}
Object = dict[str, Any]


@pytest.fixture(scope="module")
def namespace(api_server: Mapping[str, str]) -> Iterator[str]:
    """A namespace with the two secrets."""
    api = Api(api_server["LAB_API_URL"], api_server["LAB_API_CA"], api_server["LAB_ADMIN_TOKEN"])
    name = f"storage-{secrets.token_hex(4)}"
    api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    for kind, key, record in (("config", "team", CONFIG), ("server", "files", SERVER)):
        secret = {"metadata": {"name": f"storage-{kind}"}, "stringData": {key: json.dumps(record)}}
        api.create(f"/api/v1/namespaces/{name}/secrets", secret)
    yield name
    api.delete(f"/api/v1/namespaces/{name}")


class Pod:
    """A Pod's folder and environment, for one token."""

    def __init__(self, served: Mapping[str, str], folder: Path, token: str) -> None:
        (folder / "token").write_text(token)
        (folder / "ca.crt").write_text(Path(served["LAB_API_CA"]).read_text())
        host, port = served["LAB_API_URL"].removeprefix("https://").split(":")
        self.pai = folder / "pai"
        self.pai.mkdir()
        self._env = {
            "PAIRUN_API_CREDENTIALS": str(folder),
            "KUBERNETES_SERVICE_HOST": host,
            "KUBERNETES_SERVICE_PORT": port,
        }

    def run(self, namespace: str) -> Object:
        """One attempt."""
        path = str(self.pai / "storage" / "team.json")
        args = {"path": path, "allowed": '["team"]', "namespace": namespace}
        module, problems = build(MODULE, args)
        assert module is not None, problems
        context = HostContext(self._env, str(self.pai))
        report = perform(module, context)._asdict()
        # An attempt's process ends with its connection; this one goes on.
        assert context._api is not None
        context._api.close()
        return report


def test_the_secrets_become_a_file_for_root(
    api_server: Mapping[str, str], namespace: str, tmp_path: Path
) -> None:
    """It is written once; the second run changes nothing."""
    pod = Pod(api_server, tmp_path, api_server["LAB_ADMIN_TOKEN"])
    report = pod.run(namespace)
    assert (report["outcome"], report["message"]) == ("changed", "1 to mount"), report
    assert pod.run(namespace)["outcome"] == "ok"
    file = pod.pai / "storage" / "team.json"
    assert json.loads(file.read_text())[0]["password"] == "sesame-1"
    assert file.stat().st_mode & 0o777 == 0o600


def test_without_the_right_it_is_said_which_is_missing(
    api_server: Mapping[str, str], namespace: str, tmp_path: Path
) -> None:
    """Permanent, with the verb and the resource; nothing is written."""
    pod = Pod(api_server, tmp_path, api_server["LAB_LIMITED_TOKEN"])
    report = pod.run(namespace)
    assert (report["outcome"], report["kind"]) == ("failed", "permanent"), report
    assert "secrets" in f"{report['message']} {report['hint']}"
    assert not list(pod.pai.iterdir())


def test_a_namespace_without_the_secrets(api_server: Mapping[str, str], tmp_path: Path) -> None:
    """A cluster that never had them is told by the secret's name."""
    pod = Pod(api_server, tmp_path, api_server["LAB_ADMIN_TOKEN"])
    report = pod.run("default")
    assert report["kind"] == "permanent"
    assert "there is no secret storage-config in the namespace default" in report["message"]

"""Events of Pods in a real API server: sent by ``pairun init`` with the right, refused without it."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from pairun.volume.journal import read_journal
from tests.node.api import Api, ApiError

INIT = """phase: init
tasks:
  - id: data
    name: It fails
    cmd: {script: 'echo no data here; exit 3'}
    retries: 0
"""


@pytest.fixture
def namespace(api_server: Mapping[str, str]) -> Iterator[tuple[Api, str]]:
    """A namespace of the test's own, and who may look into it."""
    api = Api(api_server["LAB_API_URL"], api_server["LAB_API_CA"], api_server["LAB_ADMIN_TOKEN"])
    name = f"events-{secrets.token_hex(4)}"
    api.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    yield api, name
    with contextlib.suppress(ApiError):
        api.call("DELETE", f"/api/v1/namespaces/{name}")


def init(tmp: Path, api_server: Mapping[str, str], token: str, namespace: str) -> tuple[int, Any]:
    """Run the init phase of a Pod with this token; returns exit code and records of Events."""
    shutil.copy(api_server["LAB_API_CA"], tmp / "ca.crt")
    (tmp / "token").write_text(token)
    (tmp / "root/playbooks").mkdir(parents=True)
    (tmp / "root/playbooks/init.yaml").write_text(INIT)
    url = urlsplit(api_server["LAB_API_URL"])
    env = {
        "PATH": os.environ["PATH"], "PAIRUN_PAI_DIR": str(tmp / "pai"), "PAIRUN_BUNDLE": "",
        "RUNTIME_CONFIG": "commands: [echo hi]", "FC_POD_UID": "uid-1", "POD_NAME": "mnist-0",
        "POD_NAMESPACE": namespace, "PAIRUN_API_CREDENTIALS": str(tmp),
        "KUBERNETES_SERVICE_HOST": url.hostname or "", "KUBERNETES_SERVICE_PORT": str(url.port),
    }  # fmt: skip
    (tmp / "pai").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "pairun", "init", "--root", str(tmp / "root")],
        env=env, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert token not in done.stdout + done.stderr
    journal = read_journal(str(tmp / "pai/logs/uid-1/journal.jsonl"))
    return done.returncode, [r for r in journal if r["type"] == "event"]


def test_a_failed_task_is_among_the_pods_events(
    tmp_path: Path, api_server: Mapping[str, str], namespace: tuple[Api, str]
) -> None:
    """The server takes the object as it is, and shows it under the Pod's name."""
    api, name = namespace
    code, (record,) = init(tmp_path, api_server, api_server["LAB_ADMIN_TOKEN"], name)
    assert (code, "because" in record) == (1, False)
    (event,) = api.call("GET", f"/api/v1/namespaces/{name}/events")["items"]
    assert (event["type"], event["reason"]) == ("Warning", "TaskFailed")
    assert event["message"] == record["message"]
    assert (event["involvedObject"]["name"], event["involvedObject"]["uid"]) == ("mnist-0", "uid-1")


def test_an_account_without_the_right_changes_nothing(
    tmp_path: Path, api_server: Mapping[str, str], namespace: tuple[Api, str]
) -> None:
    """The refusal is in the journal; the phase ends as it would have."""
    api, name = namespace
    code, (record,) = init(tmp_path, api_server, api_server["LAB_LIMITED_TOKEN"], name)
    assert code == 1
    assert "may not create events" in record["because"]
    assert api.call("GET", f"/api/v1/namespaces/{name}/events")["items"] == []

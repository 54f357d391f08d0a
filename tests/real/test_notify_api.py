"""The module notify, against a real API server: the Events of a Pod."""

from __future__ import annotations

import contextlib
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from pairun.contract.arguments import build
from pairun.contract.loading import load_module
from pairun.host.context import HostContext
from pairun.module import CheckModule, Permanent, Result
from tests.node.api import Api, ApiError

FILE = Path(__file__).parents[2] / "modules" / "notify.py"


@pytest.fixture
def namespace(api_server: Mapping[str, str]) -> Iterator[tuple[Api, str]]:
    """A namespace of the test's own, and who may look into it."""
    api = Api(api_server["LAB_API_URL"], api_server["LAB_API_CA"], api_server["LAB_ADMIN_TOKEN"])
    name = f"notify-{secrets.token_hex(4)}"
    api.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    yield api, name
    with contextlib.suppress(ApiError):
        api.call("DELETE", f"/api/v1/namespaces/{name}")


def notify(
    tmp_path: Path, api_server: Mapping[str, str], token: str, **env: str
) -> tuple[Result | None, list[str]]:
    """Run the module as a Pod with this token would."""
    shutil.copy(api_server["LAB_API_CA"], tmp_path / "ca.crt")
    (tmp_path / "token").write_text(token)
    url = urlsplit(api_server["LAB_API_URL"])
    variables = {
        "PAIRUN_API_CREDENTIALS": str(tmp_path), "KUBERNETES_SERVICE_HOST": url.hostname or "",
        "KUBERNETES_SERVICE_PORT": str(url.port), "PAI_JOB_NAME": "anna~mnist",
        "FC_POD_NAME": "mnist-worker-0", "FC_POD_UID": "0b5ae3ae-0000-4000-8000-000000000000",
        "FC_TASKROLE_NAME": "worker", "FC_TASK_INDEX": "0", **env,
    }  # fmt: skip
    said: list[str] = []
    context = HostContext(variables, str(tmp_path), emit_log=said.append)
    args: dict[str, Any] = {"kubernetes": True, "policy": "fail"}
    module, problems = build(load_module("notify", str(FILE)), args)
    assert isinstance(module, CheckModule), problems
    try:
        return module.check(context), said
    finally:
        # The attempt's process would end here, and its connection with it.
        if context._api is not None:
            context._api.close()


def test_a_failure_is_an_event_of_the_pod(
    tmp_path: Path, api_server: Mapping[str, str], namespace: tuple[Api, str]
) -> None:
    """Start and failure stand among the Pod's events, the failure as a warning."""
    api, name = namespace
    ended = {"PAIRUN_EVENT": "failure", "PAIRUN_EXIT_CODE": "3", "PAIRUN_MESSAGE": "é" * 2000}
    admin = api_server["LAB_ADMIN_TOKEN"]
    for more in ({}, ended):
        result, _ = notify(tmp_path, api_server, admin, FC_FRAMEWORK_NAMESPACE=name, **more)
        assert result is not None
        assert result.message.endswith("sent to the Pod's events")
    found = api.call("GET", f"/api/v1/namespaces/{name}/events")["items"]
    start, failure = sorted(found, key=lambda e: str(e["type"]))
    assert (start["type"], start["reason"]) == ("Normal", "JobStarted")
    assert start["message"] == "anna~mnist, worker-0 started"
    assert start["involvedObject"]["name"] == "mnist-worker-0"
    assert start["involvedObject"]["uid"].startswith("0b5ae3ae")
    assert (failure["type"], failure["reason"]) == ("Warning", "JobFailed")
    assert failure["message"].startswith("anna~mnist, worker-0 failed with exit code 3: é")
    assert len(failure["message"].encode()) <= 1024


def test_a_second_attempt_creates_no_second_event(
    tmp_path: Path, api_server: Mapping[str, str], namespace: tuple[Api, str]
) -> None:
    """Attempts of one executor send one Event: its name follows from the message."""
    api, name = namespace
    for _ in range(2):
        result, _said = notify(
            tmp_path, api_server, api_server["LAB_ADMIN_TOKEN"], FC_FRAMEWORK_NAMESPACE=name
        )
        assert result is not None
    assert len(api.call("GET", f"/api/v1/namespaces/{name}/events")["items"]) == 1


def test_a_token_without_the_right(
    tmp_path: Path, api_server: Mapping[str, str], namespace: tuple[Api, str]
) -> None:
    """The refusal says who lacks what right where, and how to give it."""
    token = api_server["LAB_LIMITED_TOKEN"]
    with pytest.raises(Permanent, match="may not create events in the namespace") as refused:
        notify(tmp_path, api_server, token, FC_FRAMEWORK_NAMESPACE=namespace[1])
    assert refused.value.hint is not None
    assert "create role pairun-create-events --verb=create --resource=events" in refused.value.hint
    assert token not in refused.value.message + refused.value.hint


def test_a_token_that_is_none(
    tmp_path: Path, api_server: Mapping[str, str], namespace: tuple[Api, str]
) -> None:
    """A token that the server does not know is said to be refused."""
    with pytest.raises(Permanent, match="refuses the token"):
        notify(tmp_path, api_server, "expired", FC_FRAMEWORK_NAMESPACE=namespace[1])

"""Peers, ports and the environment that tells about them."""

from __future__ import annotations

import base64
import gzip
import json
import time
from typing import Any

import pytest

from pairun.errors import PairunError
from pairun.kube.cluster import (
    JobCluster,
    cluster_from_framework,
    cluster_summary,
)
from pairun.kube.ports import PORT_ANNOTATION
from pairun.kube.statuses import MAX_STATUS_BYTES
from pairun.openpai.environment import runtime_environment

PORTS = {"schedulePortStart": 20000, "schedulePortEnd": 40000}
UID = "f1020521-9bda-11ea-830b-000d3ab25bb6"


def spec(**counts: int) -> str:
    """A port-scheduling annotation."""
    return json.dumps({**PORTS, "ports": {label: {"count": n} for label, n in counts.items()}})


def framework(
    statuses: dict[str, list[tuple[str | None, str | None]]], annotations: dict[str, str]
) -> dict[str, Any]:
    """A Framework with the statuses' roles, tasks given by Pod and host."""
    return {
        "spec": {
            "taskRoles": [
                {"name": n, "task": {"pod": {"metadata": {"annotations": {PORT_ANNOTATION: a}}}}}
                for n, a in annotations.items()
            ]
        },
        "status": {
            "attemptStatus": {
                "taskRoleStatuses": [
                    {
                        "name": name,
                        "taskStatuses": [
                            {"index": i, "attemptStatus": {"podUID": uid, "podHostIP": ip}}
                            for i, (uid, ip) in enumerate(tasks)
                        ],
                    }
                    for name, tasks in statuses.items()
                ]
            }
        },
    }


def variables(
    made: dict[str, Any], role: str = "w", index: int = 0, **options: Any
) -> dict[str, str]:
    """The environment of a task."""
    cluster = cluster_from_framework(made, role, index, options.pop("raw_names", {}), **options)
    return dict(runtime_environment(cluster))


def test_a_peer_without_address_is_left_out_of_addresses_only() -> None:
    """Its ports are known by its Pod, and it counts as an instance."""
    found = variables(framework({"w": [(UID, "10.0.0.1"), (UID, None)]}, {"w": spec(http=1)}))
    assert "PAI_HOST_IP_w_1" not in found
    assert "PAI_PORT_LIST_w_1_http" in found
    assert found["PAI_TASK_ROLE_w_HOST_LIST"] == f"10.0.0.1:{found['PAI_w_0_http_PORT']}"
    assert found["PAI_TASK_ROLE_INSTANCES"] == "w:0,w:1"


def test_a_peer_without_a_pod_has_no_made_up_ports() -> None:
    """The original hashed the word None, and people connected to it."""
    found = variables(
        framework({"w": [(UID, "10.0.0.1"), (None, "10.0.0.2")]}, {"w": spec(http=1)})
    )
    assert not [name for name in found if "_w_1_http" in name]
    assert found["PAI_HOST_IP_w_1"] == "10.0.0.2"
    assert found["PAI_TASK_ROLE_w_HOST_LIST"].count(":") == 1


def test_what_is_not_known_of_oneself_is_taken_from_the_pod_or_left_out() -> None:
    """Never the word None: the caller knows better, or nobody does."""
    made = framework({"w": [(None, None)]}, {"w": spec(http=1, ssh=1)})
    assert set(variables(made)) == {"PAI_TASK_ROLE_w_HOST_LIST", "PAI_TASK_ROLE_INSTANCES"}
    found = variables(made, own_pod_uid=UID, own_host_ip="10.0.0.9")
    assert found["PAI_CONTAINER_HOST_IP"] == found["PAI_CURRENT_CONTAINER_IP"] == "10.0.0.9"
    assert found["PAI_CONTAINER_SSH_PORT"] == "39080"


@pytest.mark.parametrize("annotation", [spec(http=0, ssh=0), spec(tcp=1), "{}"])
def test_missing_http_and_ssh_ports_are_empty(annotation: str) -> None:
    """The original died of them."""
    found = variables(framework({"w": [(UID, "10.0.0.1")]}, {"w": annotation}))
    assert found["PAI_CONTAINER_SSH_PORT"] == found["PAI_CURRENT_CONTAINER_PORT"] == ""
    assert found["PAI_TASK_ROLE_w_HOST_LIST"] == "10.0.0.1:"


def test_a_label_without_ports_keeps_its_place() -> None:
    """It is listed with nothing after the colon."""
    found = variables(framework({"w": [(UID, "1")]}, {"w": spec(a=0, ssh=1, http=1)}))
    assert found["PAI_CONTAINER_HOST_PORT_LIST"].startswith("a:;ssh:39080;http:")
    assert found["PAI_PORT_LIST_w_0_a"] == ""


def test_a_role_that_was_scaled_away_is_skipped() -> None:
    """A status without a spec is of the past."""
    made = framework({"old": [(UID, "1")], "w": [(UID, "2")]}, {"w": spec(http=1)})
    assert variables(made)["PAI_TASK_ROLE_INSTANCES"] == "w:0"


def test_raw_names_get_aliases_after_everything_else() -> None:
    """What users build from the raw name exists; a plain name has no second one."""
    made = framework(
        {"w": [(UID, "10.0.0.1")], "psserver": [(UID, "10.0.0.2")]},
        {"w": spec(http=1), "psserver": spec(http=1)},
    )
    raw_names = {"psserver": "PS_server", "w": "w"}
    names = list(variables(made, raw_names=raw_names))
    assert names[-4:] == [
        "PAI_PORT_LIST_PS_server_0_http",
        "PAI_PS_server_0_http_PORT",
        "PAI_HOST_IP_PS_server_0",
        "PAI_TASK_ROLE_PS_server_HOST_LIST",
    ]
    assert names[:-4] == list(variables(made))


def compressed(made: dict[str, Any], data: bytes | None = None) -> dict[str, Any]:
    """The same Framework with the statuses as FrameworkController stores large ones."""
    attempt = made["status"]["attemptStatus"]
    raw = json.dumps(attempt["taskRoleStatuses"]).encode() if data is None else data
    text = base64.b64encode(gzip.compress(raw)).decode()
    status = {"taskRoleStatuses": None, "taskRoleStatusesCompressed": text}
    return {**made, "status": {"attemptStatus": status}}


def test_compressed_statuses_are_inflated() -> None:
    """Large jobs look the same."""
    made = framework({"w": [(UID, "10.0.0.1")]}, {"w": spec(http=1)})
    assert variables(compressed(made)) == variables(made)


MADE = framework({"w": [(UID, "1")]}, {"w": spec(http=1)})
UNUSABLE: list[tuple[dict[str, Any], str]] = [
    ({**MADE, "status": None}, "no task statuses yet"),
    ({**MADE, "status": {"attemptStatus": {"taskRoleStatuses": []}}}, "no task statuses yet"),
    (compressed(MADE, b"[1]"), "'taskRoleStatuses' .* does not have its controller"),
    (compressed(MADE, b"4"), "'taskRoleStatuses' .* does not have its controller"),
    (
        compressed(MADE, b'[{"name": "w", "taskStatuses": [5]}]'),
        "'taskStatuses' .* does not have its controller",
    ),
    (compressed(MADE, b'[{"name": 5}]'), "'name' .* does not have its controller"),
    (
        compressed(MADE, b'[{"name": "w", "taskStatuses": [{"index": "0"}]}]'),
        "'index' .* does not have its controller",
    ),
    (compressed(MADE, b'[{"name": "w", "taskStatuses": [{}]}]'), "incomplete"),
    (compressed(MADE, b'[{"name": "w"}]'), "incomplete"),
    (compressed(MADE, b"["), "cannot be read"),
    (compressed(MADE, b"[" * 100_000), "cannot be read"),
    (compressed(MADE, b" " * (MAX_STATUS_BYTES + 1)), "too large"),
    (
        {"spec": MADE["spec"], "status": {"attemptStatus": {"taskRoleStatusesCompressed": "!"}}},
        "end too early",
    ),
    ({"status": MADE["status"]}, "'spec' is missing"),
    ({**MADE, "spec": {}}, "'spec.taskRoles' is missing"),
    ({**MADE, "spec": {"taskRoles": {}}}, "'spec.taskRoles' must be a list"),
    ({**MADE, "spec": {"taskRoles": [{"name": "w"}]}}, "a role or a task has no 'task'"),
    ({**MADE, "status": 5}, "'status' .* does not have its controller"),
    ({**MADE, "status": {"attemptStatus": []}}, "'attemptStatus' .* does not have its controller"),
]


@pytest.mark.parametrize(("made", "message"), UNUSABLE)
def test_a_framework_that_cannot_be_used_says_why(made: dict[str, Any], message: str) -> None:
    """Missing, broken and hostile statuses are one kind of error."""
    with pytest.raises(PairunError, match=message) as e:
        cluster_from_framework(made, "w", 0, {})
    assert e.value.problems[0].id == "PR704"


def test_the_summary_tells_the_same_as_the_environment() -> None:
    """`cluster.json` is plain data."""
    cluster = cluster_from_framework(MADE, "w", 0, {"w": "W"})
    summary = json.loads(json.dumps(cluster_summary(cluster)))
    assert summary["own"] == {"role": "w", "index": 0}
    (role,) = summary["roles"]
    assert (role["name"], role["fc_name"]) == ("W", "w")
    (port,) = role["instances"][0].pop("ports")["http"]
    assert role["instances"] == [{"index": 0, "pod_uid": UID, "host_ip": "1"}]
    assert cluster.own is not None
    assert cluster.own.first_port("http") == str(port)
    assert JobCluster(roles=(), own_role="w", own_index=0).own is None


def test_ten_thousand_tasks_take_a_moment() -> None:
    """The work grows with the number of tasks, not with its square."""
    tasks: list[tuple[str | None, str | None]] = [(f"{i:036}", "10.0.0.1") for i in range(10_000)]
    began = time.process_time()
    found = variables(framework({"w": tasks}, {"w": spec(http=1, ssh=1)}), raw_names={"w": "W"})
    assert len(found) > 100_000 / 2
    assert time.process_time() - began < 5

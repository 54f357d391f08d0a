"""The owner of a Pod, and of what owns it."""

from __future__ import annotations

from typing import Any

import pytest

from pairun.kube.owners import controller_of


def item(kind: str, version: str, **more: Any) -> dict[str, Any]:
    """An object with a controller of a kind."""
    reference = {"apiVersion": version, "kind": kind, "name": "a/b", "uid": "u", **more}
    return {"metadata": {"namespace": "team", "ownerReferences": [reference]}}


@pytest.mark.parametrize(
    ("kind", "version", "path"),
    [
        ("Job", "batch/v1", "/apis/batch/v1/namespaces/team/jobs/a%2Fb"),
        ("ConfigMap", "v1", "/api/v1/namespaces/team/configmaps/a%2Fb"),
        ("StatefulSet", "apps/v1", None),
    ],
)
def test_what_is_between_a_pod_and_its_workload(kind: str, version: str, path: str | None) -> None:
    """Kinds that other workloads make are read for their own owner; a ConfigMap is no workload."""
    owner = controller_of(item(kind, version, controller=True))
    assert owner is not None
    assert owner.path == path
    assert owner.is_workload is (kind != "ConfigMap")


@pytest.mark.parametrize(
    "pod",
    [
        {},
        item("Job", "batch/v1"),
        item("Job", "batch/v1", controller=True, uid=""),
        {"metadata": {"ownerReferences": ["x"]}},
    ],
)
def test_no_controller(pod: dict[str, Any]) -> None:
    """An object without one, or with a reference that names none."""
    assert controller_of(pod) is None

"""Jobs that wait in a queue of Kueue."""

from __future__ import annotations

from typing import Any

import pytest

from pairun.engines.kubernetes import watching
from tests.engines.kubernetes.samples import PODS, Serve
from tests.fakeapi import Answer, status

WAITS = {"type": "QuotaReserved", "status": "False", "message": "no quota for nvidia.com/gpu"}
RESERVED = {"type": "QuotaReserved", "status": "True"}
ADMITTED = {"type": "Admitted", "status": "True"}
EVICTED = {"type": "Evicted", "status": "True", "message": "preempted"}


@pytest.mark.parametrize(
    ("workload", "because"),
    [
        (
            {"status": {"conditions": [WAITS]}},
            "waiting for quota in queue research: no quota for nvidia.com/gpu",
        ),
        (
            {"status": {"conditions": [WAITS, EVICTED]}},
            "waiting for quota in queue research: no quota for nvidia.com/gpu (evicted: preempted)",
        ),
        (
            {
                "status": {
                    "conditions": [RESERVED],
                    "admissionChecks": [{"name": "a", "state": "Ready"}, {"name": "b"}],
                }
            },
            "quota is reserved in queue research; waiting for admission checks: b",
        ),
        ({"spec": {"active": False}}, "deactivated in queue research"),
        ({"status": {"conditions": [RESERVED, ADMITTED]}}, "suspended"),
        (None, "waiting for quota in queue research: Kueue has no Workload of this job"),
        (404, "waiting in queue research: the cluster has no Kueue that would start the job"),
        (403, "waiting in queue research; cannot read the reason: "),
    ],
)
@pytest.mark.parametrize("served", ["v1beta1", "v1beta2"])
def test_a_job_in_a_queue_says_what_it_waits_for(
    serve: Serve, workload: dict[str, Any] | int | None, because: str, served: str
) -> None:
    """In the words of the Workload that Kueue makes for it, in the version that Kueue serves."""
    job = {
        "metadata": {
            "name": "mnist",
            "uid": "u-1",
            "labels": {"kueue.x-k8s.io/queue-name": "research", "pairun/job": "mnist"},
        },
        "spec": {"completions": 2, "suspend": True},
        "status": {"conditions": [{"type": "Suspended", "status": "True"}]},
    }

    def handler(_: str, path: str, query: dict[str, str], ___: Any) -> Answer:
        if path.endswith("/workloads"):
            if served not in path or workload == 404:
                return status(404, "NotFound", "not found")
            if workload == 403:
                return status(403, "Forbidden", "no right to list workloads")
            assert query["labelSelector"] == "kueue.x-k8s.io/job-uid=u-1"
            return 200, {"items": [workload] if workload else [], "metadata": {}}
        if path.endswith("/jobs/mnist"):
            return 200, job
        if path == PODS:
            return 200, {"items": [], "metadata": {"resourceVersion": "1"}}
        return status(404, "NotFound", "not found")

    cluster, _ = serve(handler)
    state = watching.read_job(cluster, "mnist")
    assert state.state == "waiting"
    assert state.because.startswith(because)

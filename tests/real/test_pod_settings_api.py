"""Every setting of Pods with every engine, against a real API server that would refuse an unknown field."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from pairun.engines.manifest.choices import ENGINES, Engine
from pairun.engines.manifest.objects import make_objects
from pairun.kube.owners import Object
from tests.engines.manifest.test_podvalues import (
    IN_POD,
    IN_WORKLOAD,
    pods_in,
    setting_of,
)
from tests.engines.test_manifest import ONE, job_of, options
from tests.real.conftest import Kubectl

CHECK = ("--dry-run=server", "--validate=true", "--filename=-")
NEWER = {"suspend", "ttl_after_finished", "queue"}
"""Settings of a Job that the server's version, 1.20, does not have without being switched on."""
CLASSES = [
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 1,
    },
    {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "nvidia"},
        "handler": "runc",
    },
]


@pytest.fixture(scope="module")
def classes(kubectl: Kubectl) -> Iterator[None]:
    """The classes of priority and runtime that the examples name."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": CLASSES})
    done = kubectl("apply", "--filename=-", stdin=text)
    assert done.returncode == 0, done.stderr
    yield
    kubectl("delete", "--filename=-", stdin=text)


def variants() -> dict[str, dict[str, Any]]:
    """Settings to try, by name: each alone, and all of the profile restricted together."""
    alone = {key: setting_of(key) for key in (*IN_POD, *IN_WORKLOAD)}
    more: dict[str, dict[str, Any]] = {
        "restricted": {"pod_security": "restricted"},
        "volcano": {"queue": "a", "queue_system": "volcano"},
        "yunikorn": {"queue": "root.a", "queue_system": "yunikorn"},
    }
    return {**alone, **more}


def workload_of(engine: Engine, name: str, pod: dict[str, Any]) -> Object | None:
    """What the server is to check for an engine; None where the engine has no such setting."""
    job = job_of(ONE)
    chosen = options(job, engine, pod, version=None if engine == "jobset" else (1, 20))
    workload = copy.deepcopy(make_objects(job, chosen)[-1])
    plain = re.sub("[^a-z0-9]+", "-", name.lower())
    if engine == "framework":
        # its definition does not describe the Pods that the controller makes
        [template] = pods_in(workload)
        workload = {"apiVersion": "v1", "kind": "Pod", **template}
    workload["metadata"]["name"] = plain
    return workload


def taken_by(engine: Engine, name: str) -> bool:
    """Whether an engine, on this server, has a setting at all."""
    expected = IN_WORKLOAD.get(name, {}).get(engine)
    if (engine, name) == ("framework", "restricted"):
        return False
    return not isinstance(expected, str) and not (engine == "job" and name in NEWER)


@pytest.mark.shared
@pytest.mark.usefixtures("jobsets", "classes")
@pytest.mark.parametrize("engine", ENGINES)
def test_the_api_server_takes_every_setting(kubectl: Kubectl, engine: Engine) -> None:
    """Each setting alone, in an object of its own; all of them are checked in one call."""
    items = [
        workload_of(engine, name, pod) for name, pod in variants().items() if taken_by(engine, name)
    ]
    assert len(items) > len(IN_POD)
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    done = kubectl("apply", *CHECK, stdin=text)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("created (server dry run)") == len(items)


@pytest.mark.shared
@pytest.mark.usefixtures("jobsets", "classes")
@pytest.mark.parametrize("engine", ["job", "jobset", "pod"])
def test_the_check_sees_a_wrong_field(kubectl: Kubectl, engine: Engine) -> None:
    """A misspelt field within a setting is refused, so the test above can fail."""
    workload = workload_of(engine, "labels", {})
    assert workload is not None
    [template] = pods_in(workload)
    # A review would already refuse the field.
    template["spec"]["affinity"] = {"nodeAffinity": {"prefered": []}}
    done = kubectl("apply", *CHECK, stdin=json.dumps(workload))
    assert done.returncode != 0
    assert "prefered" in done.stderr

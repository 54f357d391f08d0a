"""Objects that are made all or none, and removed again."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from pairun.engines.kubernetes import submitting
from pairun.engines.kubernetes.submitting import remove, submit, wait_until_gone
from pairun.errors import PairunError
from tests.engines.kubernetes.samples import PODS, Serve, ids
from tests.fakeapi import Answer, status


def described(kind: str, name: str) -> dict[str, Any]:
    """An object to make."""
    return {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": name, "labels": {"pairun/job": "mnist"}},
    }


class Store:
    """Objects under their paths; answers as the API server does, but for what is told otherwise."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.told: dict[tuple[str, str], Answer] = {}
        self.silent: set[str] = set()

    def __call__(self, method: str, path: str, query: dict[str, str], body: Any) -> Answer:
        """Answer."""
        if (method, path) in self.told:
            return self.told[method, path]
        if method == "POST":
            path = f"{path}/{body['metadata']['name']}"
            if path in self.objects:
                return status(409, "AlreadyExists", "already exists")
            body["metadata"]["uid"] = f"uid-{len(self.objects)}"
            self.objects[path] = body
            return None if path in self.silent else (201, body)
        if path in self.objects:
            if method == "DELETE":
                return 200, self.objects.pop(path)
            return 200, self.objects[path]
        if method == "GET" and path.endswith(("pods", "secrets", "configmaps")):
            items = [o for p, o in self.objects.items() if p.startswith(f"{path}/")]
            return 200, {"items": items, "metadata": {}}
        return status(404, "NotFound", "not found")


BATCH = [
    described("Secret", "mnist-rendezvous"),
    described("ConfigMap", "mnist-job"),
    described("Pod", "p"),
]


@pytest.mark.parametrize(
    "answer", [status(403, "Forbidden", "no"), status(422, "Invalid", "bad"), None]
)
def test_a_submission_that_fails_leaves_nothing(serve: Serve, answer: Answer) -> None:
    """Whatever was made before is removed, and said."""
    store = Store()
    cluster, _ = serve(store)
    store.told["POST", PODS] = answer
    with pytest.raises(PairunError) as e:
        submit(cluster, "mnist", BATCH)
    assert "removed again: Secret mnist-rendezvous, ConfigMap mnist-job" in str(e.value)
    assert store.objects == {}


def test_what_was_made_without_an_answer_goes_too(serve: Serve) -> None:
    """A Pod whose creation did not answer is found by its mark and removed."""
    store = Store()
    cluster, _ = serve(store)
    store.silent.add(f"{PODS}/p")
    with pytest.raises(PairunError):
        submit(cluster, "mnist", BATCH)
    assert store.objects == {}


def test_what_cannot_be_removed_is_said(serve: Serve) -> None:
    """With its kind and name."""
    store = Store()
    cluster, _ = serve(store)
    store.told["POST", PODS] = status(422, "Invalid", "bad")
    secret = "/api/v1/namespaces/space/secrets/mnist-rendezvous"
    store.told["DELETE", secret] = status(403, "Forbidden", "no")
    with pytest.raises(PairunError) as e:
        submit(cluster, "mnist", BATCH)
    assert str(e.value).endswith("could not be removed: Secret mnist-rendezvous")


def test_a_job_of_this_name_stays_as_it_is(serve: Serve) -> None:
    """The second submission is refused, and removes nothing of the first."""
    store = Store()
    cluster, _ = serve(store)
    submit(cluster, "mnist", BATCH)
    before = dict(store.objects)
    with pytest.raises(PairunError) as e:
        submit(cluster, "mnist", BATCH)
    assert ids(e) == ["PR789"]
    assert "`pairun delete mnist --namespace " in (e.value.problems[0].hint or "")
    assert store.objects == before


def test_what_is_left_of_a_job_can_be_deleted(serve: Serve) -> None:
    """Its Secret and ConfigMap, when somebody deleted the workload; then there is no job."""
    store = Store()
    cluster, _ = serve(store)
    submit(cluster, "mnist", BATCH[:2])
    assert remove(cluster, "mnist").what == ["Secret mnist-rendezvous", "ConfigMap mnist-job"]
    with pytest.raises(PairunError) as e:
        remove(cluster, "mnist")
    assert ids(e) == ["PR789"]


def test_the_wait_for_pods_survives_a_silent_server(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While nothing comes back from the API server, the Pods may end all the same."""
    monkeypatch.setattr(submitting, "_POLL_S", 0.01)
    store = Store()
    cluster, fake = serve(store)
    submit(cluster, "mnist", [{**BATCH[2], "metadata": {"name": "p", "labels": {}}}])
    removed = remove(cluster, "mnist")
    store.told["GET", PODS] = None
    asked = len(fake.asked)

    def recover() -> None:
        while len(fake.asked) < asked + 3:
            pass
        del store.told["GET", PODS]

    healing = threading.Thread(target=recover)
    healing.start()
    assert wait_until_gone(cluster, removed) == 0
    healing.join()
    assert len(fake.asked) > asked + 3


def test_the_group_of_plain_pods_goes_with_their_configmap(serve: Serve) -> None:
    """A PodGroup belongs to the workload; plain Pods have none, so to what `delete` removes."""
    owned: dict[str, str] = {}

    def handler(method: str, path: str, _: dict[str, str], body: Any) -> Answer:
        if method == "PATCH":
            [owner] = body["metadata"]["ownerReferences"]
            owned[path.rsplit("/", 2)[1]] = owner["kind"]
            return 200, {}
        meta = {**body["metadata"], "uid": f"u-{body['kind']}"}
        return 201, {**body, "metadata": meta}

    cluster, _ = serve(handler)
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
    config = {"apiVersion": "v1", "kind": "ConfigMap"}
    for kind, version in (("Pod", "v1"), ("Job", "batch/v1")):
        workload = {"apiVersion": version, "kind": kind}
        named = [{**o, "metadata": {"name": "a"}} for o in (config, group, workload)]
        submit(cluster, "a", named)
        owners = {
            "Pod": {"podgroups": "ConfigMap"},
            "Job": {"podgroups": "Job", "configmaps": "Job"},
        }
        assert owned == owners[kind]
        owned.clear()

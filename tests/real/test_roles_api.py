"""Each command with exactly the rights that its page lists, on a real API server."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from pairun.cli.main import main
from pairun.engines.doctor.rights import INIT_NEEDS, KIND_OF_ENGINE, RIGHTS_OF_COMMANDS, rules
from pairun.engines.kubernetes.cluster import Cluster
from pairun.engines.kubernetes.kubeconfig import Access, connect
from pairun.secrets.vault import Vault
from tests.desk import JOB

DEPLOY = Path(__file__).parents[2] / "deploy"
RBAC = "rbac.authorization.k8s.io"
Rules = Mapping[tuple[str, str], list[str]]
DONE = {
    "framework": {"state": "Completed", "attemptStatus": {"completionStatus": {"type": {"name": "Succeeded"}}}},
    "jobset": {"conditions": [{
        "type": "Completed", "status": "True", "reason": "All", "message": "all",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]},
    "job": {"conditions": [{"type": "Complete", "status": "True"}]},
}  # fmt: skip
OWNERS = {
    "framework": "ConfigMap/mnist-attempt",
    "jobset": "Job/mnist-worker-0",
    "job": "Job/mnist",
}
LARGEST = ("status", "submit --wait", "logs --follow", "delete")
"""Commands that together need every right of the others."""
UNDO = ("delete", "get")
"""Verbs that only a submission that fails uses."""


class Person:
    """A ServiceAccount whose rights are a Role's, in a namespace of the test's own."""

    def __init__(self, admin: str, tmp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.space = f"roles-{time.time_ns():x}"
        self.admin_config = admin
        self.admin: Cluster = connect(Access(admin, None, self.space), Vault())
        monkeypatch.chdir(tmp)
        Path("job.yaml").write_text(JOB)
        self.admin.create("/api/v1/namespaces", {"metadata": {"name": self.space}})
        accounts = self.admin.path("v1", "serviceaccounts")
        for name in ("runtime-account", "person"):
            self.admin.create(accounts, {"metadata": {"name": name}})
        made = self.admin.create(f"{accounts}/person/token", {"spec": {}})
        document = yaml.safe_load(Path(admin).read_text())
        for user in document["users"]:
            user["user"] = {"token": made["status"]["token"]}
        self.config = str(tmp / "person")
        Path(self.config).write_text(json.dumps(document))
        self.cluster: Cluster = connect(Access(self.config, None, self.space), Vault())
        meta = {"metadata": {"name": "person"}}
        self.admin.create(self.admin.path(f"{RBAC}/v1", "roles"), {**meta, "rules": []})
        role = {"apiGroup": RBAC, "kind": "Role", "name": "person"}
        subject = {"kind": "ServiceAccount", "name": "person", "namespace": self.space}
        bound = {**meta, "subjects": [subject], "roleRef": role}
        self.admin.create(self.admin.path(f"{RBAC}/v1", "rolebindings"), bound)

    def may(self, rules: Rules) -> None:
        """Give the person exactly these rights, and wait until the API server knows."""
        listed = [
            {"apiGroups": [group], "resources": [resource], "verbs": verbs}
            for (group, resource), verbs in rules.items()
        ]
        self.admin.merge(self.admin.path(f"{RBAC}/v1", "roles", "person"), {"rules": listed})
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
                  "spec": {"namespace": self.space}}  # fmt: skip
        wanted = {(*key, verb) for key, verbs in rules.items() for verb in verbs}
        for _ in range(600):
            answer = self.cluster.create(
                "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", review
            )
            given = {
                (group, resource, verb)
                for rule in answer["status"]["resourceRules"]
                for group in rule["apiGroups"]
                for resource in rule["resources"]
                for verb in rule["verbs"]
                if group != "authorization.k8s.io"
            }
            if given == wanted:
                return
            time.sleep(0.05)
        pytest.fail(f"the API server does not apply the Role: {given} and not {wanted}")

    def run(self, config: str, command: str, engine: str) -> int:
        """Run a command as the person or the administrator."""
        name, *options = command.split()
        what = ["mnist"]
        if name == "submit":
            what = ["job.yaml", "--engine", engine, "--image", "p:1", "--name", "mnist"]
            what += ["--kubernetes-version", "1.31"]
        return main([name, *what, *options, "--kubeconfig", config, "-n", self.space])

    def add_pods(self, engine: str) -> None:
        """Be the controller of a submitted job: create its Pods, and complete it."""
        pods = self.admin.path("v1", "pods")
        for index in (0, 1):
            name = f"mnist-worker-{index}"
            if engine != "pod":
                kind, _, owner = OWNERS[engine].partition("/")
                version = "v1" if kind == "ConfigMap" else "batch/v1"
                labels = {"pairun/job": "mnist", "FC_FRAMEWORK_NAME": "mnist",
                          "pairun/role": "worker", "pairun/index": str(index)}  # fmt: skip
                reference = {"apiVersion": version, "kind": kind, "name": owner, "uid": "u",
                             "controller": True}  # fmt: skip
                meta = {"name": name, "labels": labels, "ownerReferences": [reference]}
                containers = [{"name": "app", "image": "p:1"}]
                self.admin.create(pods, {"metadata": meta, "spec": {"containers": containers}})
            self.admin.merge(f"{pods}/{name}/status", {"status": {"phase": "Succeeded"}})
        if engine != "pod":
            workload = KIND_OF_ENGINE[engine]
            sub = "" if engine == "framework" else "status"
            path = self.admin.path(workload.version, workload.plural, "mnist", sub)
            self.admin.merge(path, {"status": DONE[engine]})

    def clean(self) -> None:
        """Delete every object of the job."""
        kinds = [(kind.version, kind.plural) for kind in KIND_OF_ENGINE.values()]
        for version, plural in (*kinds, ("v1", "secrets"), ("v1", "configmaps")):
            path = self.admin.path(version, plural)
            for each in self.admin.objects(path, "pairun/job=mnist"):
                meta = each["metadata"]
                body = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
                self.admin._json("DELETE", f"{path}/{meta['name']}", body=body)


@pytest.fixture
def person(
    api_server: Mapping[str, str], jobsets: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Person]:
    """A person without rights."""
    made = Person(api_server["KUBECONFIG"], tmp_path, monkeypatch)
    yield made
    made.clean()
    path = f"/api/v1/namespaces/{made.space}"
    made.admin.delete(path, made.admin.get(path)["metadata"]["uid"])


def _run(person: Person, config: str, command: str, engine: str) -> int:
    """Run a command on a job that has ended, or that ends as soon as it is submitted."""
    if not command.startswith("submit"):
        assert person.run(person.admin_config, "submit", engine) == 0
        person.add_pods(engine)
        code = person.run(config, command, engine)
    elif command == "submit":
        code = person.run(config, command, engine)
    else:
        has_ended = threading.Event()
        ending = threading.Thread(target=_end, args=(person, engine, has_ended))
        ending.start()
        code = person.run(config, command, engine)
        has_ended.set()
        ending.join()
    person.clean()
    return code


def _end(person: Person, engine: str, has_ended: threading.Event) -> None:
    """Complete a job when it is submitted, unless its submission has failed."""
    kind = KIND_OF_ENGINE[engine]
    while not has_ended.wait(0.05):
        if len(list(person.admin.objects(person.admin.path(kind.version, kind.plural), ""))) > (
            engine == "pod"
        ):
            return person.add_pods(engine)
    return None


@pytest.mark.parametrize("engine", list(KIND_OF_ENGINE))
@pytest.mark.parametrize("command", list(RIGHTS_OF_COMMANDS))
def test_a_command_works_with_its_rights_and_names_each_that_is_missing(
    person: Person, command: str, engine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = _run(person, person.admin_config, command, engine)
    wanted = capsys.readouterr().out
    needed = rules(engine, command)
    person.may(needed)
    assert _run(person, person.config, command, engine) == expected
    shown = capsys.readouterr()
    assert "not permitted" not in shown.err
    assert sorted(shown.out) == sorted(wanted)
    for (group, resource), verbs in needed.items() if command in LARGEST else ():
        for verb in verbs:
            if command.startswith("submit") and verb in UNDO:
                continue
            without = {**needed, (group, resource): [v for v in verbs if v != verb]}
            person.may({key: left for key, left in without.items() if left})
            _run(person, person.config, command, engine)
            assert f"{verb} {resource}" in capsys.readouterr().err


@pytest.mark.parametrize("engine", list(KIND_OF_ENGINE))
def test_the_documented_role_of_an_engine_satisfies_doctor(
    person: Person, engine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing() -> dict[str, str]:
        main(["doctor", "--json", "--kubeconfig", person.config, "-n", person.space])
        found = json.loads(capsys.readouterr().out)["findings"]
        rights = [f for f in found if f["subject"].startswith("rights of you")]
        assert rights
        return {f["subject"]: f["level"] for f in rights if f["level"] != "ok"}

    person.may(rules(engine, *RIGHTS_OF_COMMANDS))
    others = {f"rights of you: --engine {other}" for other in KIND_OF_ENGINE if other != engine}
    assert missing() == dict.fromkeys(others, "warning")
    person.may({})
    assert set(missing().values()) == {"failure"}


def test_the_deployed_roles_are_the_table() -> None:
    """And no more."""
    given = {}
    for name in ("base/service-account", "openpai/pods", "frameworks/rbac"):
        for document in yaml.safe_load_all((DEPLOY / f"{name}.yaml").read_text()):
            for rule in document.get("rules", ()) if document["kind"] == "Role" else ():
                [group], [resource] = rule["apiGroups"], rule["resources"]
                given[group, resource] = rule["verbs"]
    assert given == {(need.group, need.resource): list(need.verbs) for need in INIT_NEEDS}

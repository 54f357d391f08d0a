"""The admission policies have only fields of the API, and put into a Pod what `pairun inject` puts.

No API server of this laboratory has such policies. cel-python evaluates their expressions, with a
mapping in place of each of Kubernetes' own types.
"""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import celpy
import pytest
import yaml
from celpy import celtypes
from celpy.adapter import json_to_cel

from pairun.inject.podspec import INIT, PROGRAM, SEPARATOR, VOLUME
from tests.inject.test_schemas import unknown
from tests.inject.workloads import POD, documents, injected, run_pod
from tests.podman import ROOT

pytestmark = pytest.mark.slow

POLICY = (ROOT / "deploy" / "inject" / "policy.yaml").read_text()
TYPES = {
    "MutatingAdmissionPolicy": "V1beta1MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding": "V1beta1MutatingAdmissionPolicyBinding",
    "ValidatingAdmissionPolicy": "V1ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding": "V1ValidatingAdmissionPolicyBinding",
}


def test_no_unknown_field() -> None:
    """Every field is one of the API's."""
    documents = list(yaml.safe_load_all(POLICY))
    assert [d["kind"] for d in documents] == list(TYPES)
    for document in documents:
        assert list(unknown(document, TYPES[document["kind"]], document["kind"])) == []


def test_the_same_names_as_an_injection() -> None:
    """Init container, volume, program and paths are those of `pairun inject`."""
    expression = next(yaml.safe_load_all(POLICY))["spec"]["mutations"][0]["jsonPatch"]["expression"]
    for name in (
        INIT,
        VOLUME,
        PROGRAM,
        SEPARATOR,
        "RUNTIME_CONFIG",
        "FC_POD_UID",
        "/usr/local/pai",
    ):
        assert f'"{name}"' in expression
    assert expression.count("(") == expression.count(")")
    assert expression.count("{") == expression.count("}")


def test_every_field_of_the_pod() -> None:
    """What the expression writes into a Pod are fields of a Pod."""
    models = importlib.import_module("kubernetes.client")
    container = set(models.V1Container.attribute_map.values())
    expression = next(yaml.safe_load_all(POLICY))["spec"]["mutations"][0]["jsonPatch"]["expression"]
    block = expression[expression.index("Object.spec.initContainers{") :]
    fields = re.findall(r"^ {4}(\w+):", block[: block.index("\n  }}")], re.MULTILINE)
    assert len(fields) > 5
    assert set(fields) <= container


def evaluated(expression: str, pod: Any) -> Any:
    """What an expression of CEL makes of a Pod, as plain data."""
    # The library resolves no type whose name has dots.
    types = sorted(set(re.findall(r"\b((?:Object|JSONPatch)[\w.]*)\{", expression)))
    names = {name: name.replace(".", "_") for name in types}
    text = re.sub(r"\b((?:Object|JSONPatch)[\w.]*)\{", lambda m: f"{names[m[1]]}{{", expression)
    environment = celpy.Environment(annotations=dict.fromkeys(names.values(), _message))
    program = environment.program(environment.compile(text))
    named = MUTATING["variables"] if "variables." in expression else []
    variables = {v["name"]: evaluated(v["expression"], pod) for v in named}
    given = {"object": json_to_cel(pod), "variables": json_to_cel(variables)}
    return _plain(program.evaluate(given))


def _message(fields: Any) -> Any:
    """A value of one of Kubernetes' types; None makes one without fields."""
    return celtypes.MapType({}) if fields is None else fields


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, celtypes.BoolType):
        return bool(value)
    if isinstance(value, int):
        return int(value)
    assert isinstance(value, str), value
    return str(value)


def mutated(pod: Any) -> Any:
    """The Pod after the policy's patch (RFC 6902, "add")."""
    patch = evaluated(MUTATING["mutations"][0]["jsonPatch"]["expression"], pod)
    for operation in patch:
        assert operation["op"] == "add"
        holder: Any = pod
        *steps, last = operation["path"].strip("/").split("/")
        for step in steps:
            holder = holder[int(step) if isinstance(holder, list) else step]
        if isinstance(holder, dict):
            holder[last] = operation["value"]
        else:
            holder.insert(len(holder) if last == "-" else int(last), operation["value"])
    return pod


def is_taken(pod: Any) -> bool:
    """Whether the first policy changes a Pod with its label."""
    return all(evaluated(c["expression"], pod) for c in MUTATING["matchConditions"])


def refusals_of(pod: Any) -> list[str]:
    """What the second policy says of a Pod."""
    return [v["message"] for v in VALIDATING["validations"] if not evaluated(v["expression"], pod)]


MUTATING, VALIDATING = (
    d["spec"] for d in yaml.safe_load_all(POLICY) if not d["kind"].endswith("Binding")
)


def a_pod(**main: Any) -> Any:
    """A Pod with the label, whose main container has further fields."""
    pod = yaml.safe_load(POD)
    pod["metadata"]["labels"] = {"pairun/inject": "true"}
    pod["spec"]["containers"][0].update(main)
    return pod


WINDOWS = a_pod()
WINDOWS["spec"]["nodeSelector"] = {"kubernetes.io/os": "windows"}


def test_a_pod_is_injected_and_runs(tmp_path: Path) -> None:
    """Once; it is a valid Pod then, which its own policies take, and its command ends with its code."""
    pod = a_pod()
    assert is_taken(pod)
    made = mutated(pod)
    assert not is_taken(made)
    assert refusals_of(made) == []
    assert list(unknown(made, "V1Pod", "Pod")) == []
    _, main = run_pod(made, tmp_path)
    assert main is not None
    assert main.code == 3
    assert "the command ended with 3" in main.said


def test_what_a_pod_has_stays() -> None:
    """Lists that are there get further items; those that are not are made."""
    pod = a_pod(env=[{"name": "A", "value": "b"}], volumeMounts=[{"name": "v", "mountPath": "/v"}])
    pod["spec"] |= {"volumes": [{"name": "v", "emptyDir": {}}], "initContainers": [{"name": "own"}]}
    spec = mutated(pod)["spec"]
    (main,) = spec["containers"]
    assert [v["name"] for v in spec["volumes"]] == ["v", VOLUME]
    assert [c["name"] for c in spec["initContainers"]] == ["own", INIT]
    assert [e["name"] for e in main["env"]] == ["A", "FC_POD_UID"]
    assert [m["name"] for m in main["volumeMounts"]] == ["v", VOLUME]
    assert main["command"] == [PROGRAM, SEPARATOR, "sh", "-c", "exit 3"]


def test_init_is_as_restricted_as_the_container() -> None:
    """What the profile `restricted` wants; in a Guaranteed Pod, requests that equal the limits."""
    limits = {"cpu": "2", "memory": "4Gi"}
    pod = a_pod(
        securityContext={"runAsNonRoot": True, "runAsUser": 1000},
        resources={"limits": {**limits, "nvidia.com/gpu": "1"}, "requests": limits},
    )
    pod["spec"]["initContainers"] = [{"name": "own"}]
    _, init = mutated(pod)["spec"]["initContainers"]
    assert init["resources"] == {"limits": limits, "requests": limits}
    assert init["securityContext"] == {
        "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"}, "runAsNonRoot": True, "runAsUser": 1000,
    }  # fmt: skip
    burstable = a_pod(resources={"limits": limits, "requests": {**limits, "cpu": "1"}})
    assert "resources" not in mutated(burstable)["spec"]["initContainers"][0]


def annotated(pod: Any, **annotations: str) -> Any:
    """A Pod with annotations."""
    pod["metadata"]["annotations"] = {
        n.replace("__", "/").replace("_", "."): v for n, v in annotations.items()
    }
    return pod


def test_the_annotation_counts() -> None:
    """`pairun.io/inject: "false"` keeps both policies from a Pod with the label."""
    pod = annotated(a_pod(command=[]), pairun_io__inject="false")
    assert not is_taken(pod)
    assert not all(evaluated(c["expression"], pod) for c in VALIDATING["matchConditions"])
    assert is_taken(annotated(a_pod(), pairun_io__inject="true"))


@pytest.mark.parametrize("main", ["main", "other"])
def test_several_containers(main: str) -> None:
    """A Pod whose annotation names its first container is injected there."""
    pod = a_pod()
    pod["metadata"]["annotations"] = {"kubectl.kubernetes.io/default-container": main}
    pod["spec"]["containers"].append({"name": "other", "command": ["a"]})
    assert is_taken(pod) is (main == "main")
    assert bool(refusals_of(pod)) is (main == "other")


@pytest.mark.parametrize(
    ("pod", "says"),
    [
        (a_pod(command=[]), "has no command"),
        (a_pod(volumeMounts=[{"name": "x", "mountPath": "/usr/local/pai/x"}]), "mounts something"),
        ({**a_pod(), "metadata": {"labels": {"pairun/barrier": "true"}}}, "need rights and a key"),
        ({**a_pod(), "spec": {"containers": [{"name": n, "command": ["a"]} for n in "ab"]}},
         "several containers"),
        (WINDOWS, "Linux only"),
    ],
)  # fmt: skip
def test_what_the_second_policy_refuses(pod: Any, says: str) -> None:
    """A Pod that needs more than such a policy can give is refused, by one message."""
    (message,) = refusals_of(pod)
    assert says in message


def test_an_injected_pod_is_accepted() -> None:
    """The messages advise `pairun inject`; its Pods may have several containers, and the key."""
    pod = a_pod()
    pod["spec"]["containers"].insert(0, {"name": "sidecar", "image": "a"})
    made = yaml.safe_load(injected(yaml.safe_dump(pod), container="main"))
    assert refusals_of(made) == []
    job = INDEXED_JOB.replace("POD", json.dumps(a_pod()["spec"]))
    (template,) = [o for o in documents(injected(job, barrier=True)) if o["kind"] == "Job"]
    spec = template["spec"]["template"]["spec"]
    assert any(m["name"] == "pairun-key" for m in spec["containers"][0]["volumeMounts"])
    assert refusals_of({**a_pod(), "spec": spec}) == []


INDEXED_JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec: {completionMode: Indexed, parallelism: 2, template: {spec: POD}}
"""


@pytest.mark.parametrize("pod", [a_pod(command=[]), a_pod(command=None)])
def test_a_pod_without_a_command_is_left_to_the_second_policy(pod: Any) -> None:
    """The first policy does not change it."""
    if pod["spec"]["containers"][0]["command"] is None:
        del pod["spec"]["containers"][0]["command"]
    assert not is_taken(pod)

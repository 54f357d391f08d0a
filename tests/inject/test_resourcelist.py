"""`pairun inject` as a KRM function: the list of kustomize in, the same list out."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest
import yaml

from pairun.cli import main as cli
from tests.podman import ROOT

LIST = """\
apiVersion: config.kubernetes.io/v1
kind: ResourceList
functionConfig:
  apiVersion: pairun/v1
  kind: Inject
  metadata: {name: inject}
  spec:
    image: registry.example.com/pairun:1
    barrier: true
    env: [torchrun, jax]
    initResources: {cpu: 50m}
items:
- apiVersion: batch/v1
  kind: Job
  metadata: {name: train}   # as it was
  spec:
    completionMode: Indexed
    parallelism: 2
    template:
      spec:
        restartPolicy: Never
        containers:
        - {name: main, image: a, command: [b]}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: other}
"""


def function(text: str, code: int = 0) -> str:
    """What the function prints, or says where it fails."""
    done = subprocess.run(
        [ROOT / "deploy" / "inject" / "pairun-inject"], input=text, capture_output=True, text=True,
        env={"PATH": f"{ROOT / '.venv' / 'bin'}:{sys.exec_prefix}/bin:/usr/bin:/bin"}, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.mark.slow
def test_the_list_comes_back_with_pairun_in_it() -> None:
    """The options come from the configuration; what is made beside joins the items; twice is once."""
    made = function(LIST)
    items = yaml.safe_load(made)["items"]
    assert [i["kind"] for i in items] == [
        "Job", "ConfigMap", "ServiceAccount", "Role", "RoleBinding",
    ]  # fmt: skip
    init = items[0]["spec"]["template"]["spec"]["initContainers"][0]
    assert init["resources"]["limits"] == {"cpu": "50m"}
    assert {"name": "PAIRUN_GANG_ENVIRONMENT", "value": "torchrun,jax"} in init["env"]
    assert "# as it was" in made
    assert function(made) == made
    assert function(made.replace("barrier: true", "remove: true")) == LIST.replace(
        "barrier: true", "remove: true"
    )


def test_a_wrong_configuration() -> None:
    """An option of the wrong kind is an error with its place."""
    said = function(LIST.replace("barrier: true", "barrier: 3"), code=2)
    assert "'barrier' must be true or false" in said


AS_KUSTOMIZE_SENDS_IT = """\
apiVersion: config.kubernetes.io/v1
kind: ResourceList
items:
- apiVersion: batch/v1
  kind: Job
  metadata:
    name: my-train
    namespace: team
    annotations:
      config.kubernetes.io/id: '1'
      config.k8s.io/id: '1'
      internal.config.kubernetes.io/previousKinds: Job,Job
      internal.config.kubernetes.io/previousNames: train,train
      internal.config.kubernetes.io/previousNamespaces: _non_namespaceable_,default
      internal.config.kubernetes.io/prefixes: my-
      internal.config.kubernetes.io/index: '0'
  spec:
    completionMode: Indexed
    completions: 2
    parallelism: 2
    template:
      spec:
        containers:
        - command:
          - python
          - train.py
          image: a
          name: main
        restartPolicy: Never
functionConfig:
  apiVersion: pairun/v1
  kind: Inject
  metadata:
    annotations:
      config.kubernetes.io/function: |
        exec: {path: ./pairun-inject}
    name: inject
  spec:
    barrier: true
    events: true
    gang: 2
    image: registry.example.com/pairun:1
    use: [Secret/train-key]
"""
"""The list of the functions' specification, with the annotations and the order that kustomize writes
(kustomize, kyaml/kio/byteio_writer.go and api/internal/utils/annotations.go)."""


@pytest.mark.slow
@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_the_list_as_kustomize_sends_it(version: str) -> None:
    """Annotations of the orchestrator and the configuration come back; only new items lack them."""
    text = AS_KUSTOMIZE_SENDS_IT.replace(".io/v1\nkind: R", f".io/{version}\nkind: R")
    sent, got = yaml.safe_load(text), yaml.safe_load(function(text))
    assert {k: v for k, v in got.items() if k != "items"} == {
        k: v for k, v in sent.items() if k != "items"
    }
    job, *beside = got["items"]
    assert job["metadata"] == sent["items"][0]["metadata"]
    assert [i["kind"] for i in beside] == ["ServiceAccount", "Role", "RoleBinding"]
    assert {i["metadata"]["namespace"] for i in beside} == {"team"}
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["command"][:2] == ["/usr/local/pai/runtime", "--"]


@pytest.mark.slow
def test_a_refusal_as_the_specification_wants_it() -> None:
    """What cannot be injected is an exit code and a message on standard error."""
    text = AS_KUSTOMIZE_SENDS_IT.replace("completionMode: Indexed", "completionMode: NonIndexed")
    said = function(text.replace("    gang: 2\n", ""), code=1)
    assert "set completionMode: Indexed" in said


@pytest.mark.parametrize(
    ("key", "hint"), [("pod_group: mine", "did you mean podGroup?"), ("bogus: 1", "known: ")]
)
def test_an_unknown_key(
    key: str, hint: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error has its place and the near key; argparse is not heard."""
    text = LIST.replace("    barrier: true", f"    {key}")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert cli.main(["inject", "-"]) == 2
    said = capsys.readouterr().err
    assert f"spec.{key.partition(':')[0]} is unknown" in said
    assert hint in said
    assert ":9:5" in said
    assert "usage" not in said


def in_process(
    text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str, str]:
    """What the command prints for a list."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    code = cli.main(["inject", "-"])
    return (code, *capsys.readouterr())


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("only: [annotated]", [False, False]),
        ("only: [Job/train]", [True, False]),
        ("only: [Job/other]", None),
        ("barrier: true", [True, False]),
    ],
)
def test_the_chosen_items(
    keys: str,
    expected: list[bool] | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The function chooses objects as the command does; items that are not chosen stay as they are."""
    text = LIST.replace("    barrier: true\n    env: [torchrun, jax]", f"    {keys}")
    code, out, err = in_process(text, monkeypatch, capsys)
    assert (code == 0) is (expected is not None), err
    if expected:
        items = yaml.safe_load(out)["items"][:2]
        assert ["pairun-init" in str(item) for item in items] == expected
        assert [line.startswith("injected") for line in err.splitlines()] == expected


@pytest.mark.parametrize(
    ("keys", "hint"),
    [
        ("selector: {a: b}", "write --gang N,a=b"),
        ("indexLabel: a", "write --gang N,a"),
        ("diagnose: true", "omit it"),
        ("ssh: true", "write --env ssh"),
        ("keySecret: mine", "write --use Secret/mine"),
    ],
)
def test_a_key_of_0_3(
    keys: str,
    hint: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is an error with the new form."""
    code, _, err = in_process(LIST.replace("env: [torchrun, jax]", keys), monkeypatch, capsys)
    assert (code, hint in err) == (2, True), err

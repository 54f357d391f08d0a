"""Injecting and removing as a whole: nothing else of the text changes, and everything comes back."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pairun.errors import PairunError, Problems, Source
from pairun.inject.injecting import inject, uninject
from pairun.inject.podspec import INIT
from tests.inject.workloads import MANIFESTS, POD, documents, injected, options, refusals

Data = dict[str, Any]


def removed(text: str) -> str:
    """A manifest without pairun."""
    return uninject(Source("manifest.yaml", "job", text), Problems())


# --- generated manifests -------------------------------------------------------------------------

NAMES = st.text("abcdefgh-", min_size=1, max_size=8).map(lambda t: f"n{t}n")
VALUES = st.one_of(
    st.text(st.characters(codec="ascii", categories=("L", "N", "P", "S", "Zs")), max_size=12),
    st.sampled_from(["\u00e9\u2603", "a: b # c", "- x", "'\"", " \t"]), st.integers(), st.booleans(), st.sampled_from(["yes", "0x1", "1e3", "~", "a\nb\n\n", "$(X)"])
)  # fmt: skip


WAYS_OUT = st.sampled_from([
    "x\n  hostPID: true\n", "x\nspec: {hostNetwork: true}", "---\nkind: Secret\n", "...\n---\n", "}}, {", "'}", '"}',
    "&a *a", "*a", "!!python/object/apply:os.system [id]", "{{ cluster }}", "{% raw %}", "$(PAIRUN_UID)", "# pairun: end",
    "<<: *a", "? k\n: v", "\t- x", "| \n x", ">-", "\ufeff", "\u2028x: y", "\x85x: y", "%YAML 1.1", "@x", "`x`",
])  # fmt: skip
"""Values of labels and annotations that end what surrounds them, where somebody pastes text."""


@st.composite
def containers(draw: st.DrawFn) -> Data:
    """A container as people write it."""
    made: Data = {"name": draw(NAMES), "image": draw(NAMES)}
    if draw(st.booleans()):
        made["env"] = [
            {"name": n, "value": str(draw(VALUES))} for n in draw(st.lists(NAMES, max_size=2))
        ]
    if draw(st.booleans()):
        made["volumeMounts"] = draw(st.sampled_from([None, [], [{"name": "v", "mountPath": "/v"}]]))
    made["command"] = [_word(draw(VALUES)) for _ in range(draw(st.integers(1, 3)))]
    if draw(st.booleans()):
        made["args"] = [_word(draw(VALUES))]
    return made


def _word(value: object) -> str:
    """A text: PyYAML writes some plainly that Kubernetes reads as numbers, such as 0E0."""
    text = str(value)
    return f"w{text}" if re.match(r"[-+.]*\d", text) else text


@st.composite
def pods(draw: st.DrawFn) -> Data:
    """A Pod or a Job."""
    spec: Data = {"containers": [draw(containers())]}
    if draw(st.booleans()):
        spec = {"volumes": draw(st.sampled_from([None, [], [{"name": "v"}]])), **spec}
    if draw(st.booleans()):
        spec["initContainers"] = [draw(containers()) for _ in range(draw(st.integers(0, 2)))]
    if draw(st.booleans()):
        spec["tolerations"] = draw(st.sampled_from([None, [], [{"key": "k"}]]))
    kind, version = draw(st.sampled_from([("Pod", "v1"), ("Job", "batch/v1")]))
    inner: Data = spec if kind == "Pod" else {"template": {"spec": spec}}
    metadata: Data = {"name": draw(NAMES)}
    for key in draw(st.sets(st.sampled_from(["labels", "annotations"]))):
        metadata[key] = draw(st.dictionaries(WAYS_OUT.filter(str.isascii), WAYS_OUT, max_size=3))
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": inner}


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A manifest in one of the ways in which manifests are written."""
    parts = []
    for pod in draw(st.lists(pods(), min_size=1, max_size=3)):
        style = draw(st.sampled_from(["block", "indented", "flow", "json", "scalars"]))
        if style == "json":
            text = (
                json.dumps(pod, ensure_ascii=False, indent=draw(st.sampled_from([None, 1]))) + "\n"
            )
        elif style == "indented":
            text = yaml.dump(pod, Dumper=_Indented, sort_keys=False)
        else:
            text = yaml.safe_dump(
                pod,
                default_flow_style={"flow": True, "scalars": None}.get(style, False),
                default_style="|" if style == "scalars" and draw(st.booleans()) else None,
                sort_keys=draw(st.booleans()),
                allow_unicode=True,
            )
        if draw(st.booleans()) and style in ("block", "indented"):
            text = re.sub(r"(?m)^( *)(command|containers):$", r"\1# why\n\1\2: # here", text)
        parts.append(text)
    text = "---\n".join(parts)
    if draw(st.booleans()):
        text = text.removesuffix("\n")
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return text


class _Indented(yaml.SafeDumper):
    """Writes lists deeper than their keys, as many people do."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


@pytest.mark.slow
@given(texts())
def test_what_is_removed_again_is_as_it_was(text: str) -> None:
    """Removing from what an injection printed gives the same bytes."""
    assert removed(injected(text)) == text


@pytest.mark.slow
@given(texts())
def test_injecting_twice_is_injecting_once(text: str) -> None:
    """The second injection changes nothing."""
    once = injected(text)
    assert injected(once) == once


@pytest.mark.slow
@given(texts())
def test_only_the_pod_changes(text: str) -> None:
    """Without what was put there, the documents have the values that they had."""
    before, after = documents(text), documents(injected(text))
    assert [_stripped(d) for d in after] == [_bare(d) for d in before]


def _bare(document: Data) -> Data:
    """A document in which an empty list and none are the same."""
    return _stripped(document)


def _stripped(document: Data) -> Data:
    made = copy.deepcopy(document)
    spec = made["spec"] if made["kind"] == "Pod" else made["spec"]["template"]["spec"]
    (app,) = spec["containers"]
    if app["command"][:2] == ["/usr/local/pai/runtime", "--"]:
        app["command"] = app["command"][2:]
    ours = ("pairun", INIT, "FC_POD_UID", "FC_POD_NAME", "PAIRUN_GRACE")
    for owner, key in (
        (spec, "initContainers"),
        (spec, "volumes"),
        (app, "volumeMounts"),
        (app, "env"),
    ):
        owner[key] = [item for item in owner.get(key) or [] if item["name"] not in ours]
    return made


@pytest.mark.slow
@given(texts())
def test_a_manifest_that_was_written_anew(text: str) -> None:
    """Of what another program wrote anew, a removal gives the same objects."""
    again = yaml.safe_dump_all(documents(injected(text)), sort_keys=True)
    assert [_bare(d) for d in documents(removed(again))] == [_bare(d) for d in documents(text)]


# --- single cases --------------------------------------------------------------------------------


def test_anchors_that_only_pods_share() -> None:
    """A list that comes by an alias or a merge is written out where pairun adds to it, and comes back."""
    text = POD.replace("    image", "    env: *env\n    image").replace(
        "spec:\n", "x-env: &env [{name: A, value: b}]\nspec:\n"
    )
    made = injected(text)
    assert "env: *env" not in made
    assert documents(made)[0]["spec"]["containers"][0]["env"][0] == {"name": "A", "value": "b"}
    assert removed(made) == text


def test_a_mode_that_comes_by_an_alias() -> None:
    """A list that is written out keeps its values: 0400 is octal for kubectl."""
    volumes = "x-v: &v [{name: s, secret: {secretName: s, defaultMode: 0400, optional: yes}}]\n"
    text = volumes + POD.replace("  containers:", "  volumes: *v\n  containers:")
    (pod,) = documents(injected(text))
    secret = {"secretName": "s", "defaultMode": 0o400, "optional": True}
    assert pod["spec"]["volumes"][0]["secret"] == secret
    assert removed(injected(text)) == text


def test_text_that_others_share_is_not_edited() -> None:
    """Where an edit would reach another container, pairun refuses."""
    two = POD.replace("    image", "    env: &env [{name: A, value: b}]\n    image")
    two += "  - {name: other, image: b, env: *env}\n"
    assert any("PR822" in r for r in refusals(two, container="main"))


def test_two_templates_of_one_text() -> None:
    """Two templates that are one text by an anchor are refused."""
    text = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: j}
spec:
  pytorchReplicaSpecs:
    Master: &r
      template: {spec: {containers: [{name: pytorch, image: a, command: [b]}]}}
    Worker: *r
"""
    assert any("PR822" in r for r in refusals(text))


@pytest.mark.parametrize("style", [None, 1])
def test_init_containers_of_a_list_in_flow_style(style: int | None) -> None:
    """The init container comes after the Pod's own, and a removal restores the text."""
    pod = yaml.safe_load(POD)
    pod["spec"] |= {
        "initContainers": [{"name": "a", "image": "b"}, {"name": "c", "image": "b"}],
        "volumes": [{"name": "v"}],
    }
    pod["spec"]["containers"][0]["env"] = [{"name": "A", "value": "b"}]
    text = json.dumps(pod, indent=style)
    made = injected(text)
    assert [c["name"] for c in json.loads(made)["spec"]["initContainers"]] == ["a", "c", INIT]
    assert removed(made) == text


def test_a_container_without_a_name() -> None:
    """A removal restores it, too."""
    text = POD.replace("  - name: main\n    image", "  - image")
    assert removed(injected(text)) == text


def test_a_block_of_text_at_the_end_of_a_file() -> None:
    """Without a line end, which would become part of the text, objects come before the manifest."""
    text = """\
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  completionMode: Indexed
  parallelism: 2
  template:
    spec:
      containers:
      - name: main
        image: a
        command:
        - sh
        - -c
        - |
          echo"""
    made = injected(text, barrier=True)
    *beside, job = documents(made)
    assert [o["kind"] for o in beside] == ["ServiceAccount", "Role", "RoleBinding", "Secret"]
    assert job["spec"]["template"]["spec"]["containers"][0]["command"][-1] == "echo"
    assert injected(made, barrier=True) == made
    for ending in ("", "\n"):
        assert removed(injected(text + ending, barrier=True)) == text + ending


def test_an_empty_file_and_a_template_of_helm() -> None:
    """What is no manifest is refused with words."""
    assert "PR820" in refusals("# nothing\n")[0]
    with pytest.raises(PairunError, match="key must be text") as e:
        inject([Source("x", "job", "a: {{ .Values.x }}\n")], options(), Problems())
    assert "helm template" in (e.value.problems[0].hint or "")


# --- real manifests ------------------------------------------------------------------------------

FILES = sorted(str(p.relative_to(MANIFESTS)) for p in (MANIFESTS / "manifests").rglob("*.yaml"))


@pytest.mark.slow
@pytest.mark.skipif(not FILES, reason="this machine has no collection of workloads")
def test_every_real_manifest() -> None:
    """Each of the collection is injected and comes back byte by byte, or is refused with a reason."""
    for file in FILES:
        text = (MANIFESTS / file).read_bytes().decode()
        problems = Problems()
        asked = options(entrypoint=["/entrypoint"])
        (made,), _ = inject([Source(file, "job", text)], asked, problems)
        if problems.errors:
            assert {p.id for p in problems.errors} == {"PR827"}, file
            continue
        assert removed(made) == text, file
        assert made.count("name: PAIRUN_INJECTED") + made.count('"PAIRUN_INJECTED"') > 0, file


@pytest.mark.parametrize(
    ("fields", "place", "why"),
    [
        ("command: python x", "11:14", "command must be a list of texts"),
        ("command: [python, 3]", "11:23", "write texts in quotes"),
        ("command: [b]\n    args: --verbose", "12:11", "args must be a list of texts"),
    ],
)
def test_a_command_that_is_no_list_of_texts(fields: str, place: str, why: str) -> None:
    """The API server would refuse it: an error at its place, and no registry is asked."""
    text = POD.replace("""command: ["sh", -c, 'exit 3']""", fields)
    (line,) = refusals(text, entrypoint=["other"])
    assert "error[PR821]" in line
    assert why in line
    assert f"manifest.yaml:{place}" in line

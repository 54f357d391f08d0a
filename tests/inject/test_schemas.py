"""Injected manifests fit the schemas of Kubernetes and of the kinds' own definitions."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pairun.errors import Problems, Source
from pairun.inject.beside import MARK
from pairun.inject.injecting import inject
from tests.inject.workloads import MANIFESTS, documents, options

MODELS = importlib.import_module("kubernetes.client")
"""The types of a current API, with their fields."""
FILES = sorted(str(p.relative_to(MANIFESTS)) for p in (MANIFESTS / "manifests").rglob("*.yaml"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FILES, reason="this machine has no collection of workloads"),
]

KINDS = {
    "Pod": "V1Pod", "Job": "V1Job", "CronJob": "V1CronJob", "StatefulSet": "V1StatefulSet",
    "Deployment": "V1Deployment", "DaemonSet": "V1DaemonSet", "Secret": "V1Secret",
    "ServiceAccount": "V1ServiceAccount", "Role": "V1Role", "RoleBinding": "V1RoleBinding",
}  # fmt: skip


def test_no_unknown_field() -> None:
    """Every field that pairun writes is one of Kubernetes, in a place where it may stand."""
    checked = 0
    for file, before, after in injections():
        known = {e for d in before for e in wrong_fields(d)}
        for document in after:
            checked += 1
            assert [e for e in wrong_fields(document) if e not in known] == [], file
    assert checked > 100


def test_the_definitions_of_the_kinds() -> None:
    """What was valid against its definition still is, and no unknown field would be dropped."""
    schemas, checked = definitions(), 0
    for file, before, after in injections():
        manifest = [d for d in after if MARK not in ((d.get("metadata") or {}).get("labels") or {})]
        for old, new in zip(before, manifest, strict=True):
            schema = schemas.get((old.get("apiVersion"), old.get("kind")))
            if schema is None:
                continue
            checked += 1
            assert violations(schema, new) <= violations(schema, old), file
    assert checked > 20


def injections() -> Iterator[tuple[str, list[Any], list[Any]]]:
    """The documents of every manifest of the collection, before and after, with and without a barrier."""
    for file in FILES:
        text = (MANIFESTS / file).read_bytes().decode()
        for barrier in (False, True):
            problems = Problems()
            asked = options(entrypoint=["/entrypoint"], barrier=barrier)
            (made,), _ = inject([Source(file, "job", text)], asked, problems)
            if not problems.errors:
                yield file, documents(text), documents(made)


def wrong_fields(document: Any) -> Iterator[str]:
    """Fields of an object, and of the Pods' specs in it, that Kubernetes does not have."""
    group = str(document.get("apiVersion")).partition("/")[0]
    if document.get("kind") in KINDS and "." not in group.replace(".k8s.io", ""):
        yield from unknown(document, KINDS[document["kind"]], document["kind"])
        return
    for spec in pod_specs(document):
        yield from unknown(spec, "V1PodSpec", "spec")


def pod_specs(part: Any) -> Iterator[Any]:
    """Every Pod's spec in a document."""
    if isinstance(part, dict):
        spec = part.get("spec")
        if isinstance(spec, dict) and isinstance(spec.get("containers"), list):
            yield spec
        for child in part.values():
            yield from pod_specs(child)
    elif isinstance(part, list):
        for child in part:
            yield from pod_specs(child)


def unknown(data: Any, kind: str, path: str) -> Iterator[str]:
    """The paths that a type of the API does not have, or that hold another type."""
    if match := re.fullmatch(r"list\[(.*)\]", kind):
        if data is not None and not isinstance(data, list):
            yield f"{path} is no list"
        for item in data or ():
            yield from unknown(item, match[1], f"{path}[]")
    elif match := re.fullmatch(r"dict\(str, (.*)\)", kind):
        for key, value in (data or {}).items():
            yield from unknown(value, match[1], f"{path}.{key}")
    elif (model := getattr(MODELS, kind, None)) is not None:
        if not isinstance(data, dict):
            if data is not None:
                yield f"{path} is no object"
            return
        fields = {json_name: name for name, json_name in model.attribute_map.items()}
        for key, value in data.items():
            if key not in fields:
                yield f"{path}.{key}"
            else:
                yield from unknown(value, model.openapi_types[fields[key]], f"{path}.{key}")
    elif kind == "str" and not isinstance(data, str | None) and not _MAY_BE_NUMBERS.search(path):
        yield f"{path} is no text: {data!r}"


_MAY_BE_NUMBERS = re.compile(r"(limits|requests|ort|sizeLimit|Timestamp|Time)\b")


def definitions() -> dict[tuple[str, str], Any]:
    """The schema of each kind and version."""
    out = {}
    for path in Path(MANIFESTS / "crds").glob("*.yaml"):
        text = path.read_text()
        crd = json.loads(text[text.index("\n{") :])
        for version in crd["spec"]["versions"]:
            name = f"{crd['spec']['group']}/{version['name']}"
            schema = closed(version["schema"]["openAPIV3Schema"])
            out[name, crd["spec"]["names"]["kind"]] = schema
    return out


def closed(schema: Any) -> Any:
    """A structural schema in which an unknown field is an error, as the API server would drop it."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {k: closed(v) for k, v in schema.items() if k not in ("default", "enum", "properties")}
    if "enum" in schema:
        made["enum"] = schema["enum"]
    if "properties" in schema:
        made["properties"] = {k: closed(v) for k, v in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            made.setdefault("additionalProperties", False)
            made["properties"] |= (
                {"apiVersion": {}, "kind": {}} if "spec" in made["properties"] else {}
            )
    if schema.get("x-kubernetes-int-or-string"):
        made.pop("type", None)
    if schema.get("nullable") and "type" in made:
        made["type"] = [made["type"], "null"]
    return made


def violations(schema: Any, document: Any) -> set[str]:
    """What is wrong with a document, without the values of what is listed under a name of our own."""
    validator = jsonschema.Draft4Validator(schema)
    return {
        "/".join(str(p) for p in e.absolute_path if not isinstance(p, int)) + f": {e.validator}"
        for e in validator.iter_errors(document)
    }

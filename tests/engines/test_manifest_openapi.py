"""Objects against Kubernetes' own description, as the official client has it: nothing unknown."""

from __future__ import annotations

import re
from typing import Any

import pytest
from kubernetes import client  # type: ignore[import-untyped]

from pairun.engines.manifest.choices import Engine
from pairun.engines.manifest.objects import make_objects
from tests.engines.test_manifest import (
    ONE,
    TEXT,
    app_fields,
    completion,
    job_of,
    options,
    without_first_role,
)

SCALARS: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "bool": (bool,)}
TOLERANT = completion(3, 2, "extras: {gangAllocation: false}\nsecrets: {token: abcdef}\n").replace(
    "    commands", "    taskRetryCount: 2\n    commands"
)

APP_IS_ROOT = app_fields(securityContext={"runAsUser": 0})


def strict(value: Any, type_: str, at: str) -> Any:
    """A value as the client's class; a field that is unknown, wrong or missing is an error."""
    if found := re.fullmatch(r"list\[(.*)\]", type_):
        assert isinstance(value, list), at
        return [strict(v, found[1], f"{at}[{i}]") for i, v in enumerate(value)]
    if found := re.fullmatch(r"dict[(\[]str, (.*)[)\]]", type_):
        assert isinstance(value, dict), at
        return {k: strict(v, found[1], f"{at}.{k}") for k, v in value.items()}
    if type_ in SCALARS:
        assert isinstance(value, SCALARS[type_]), f"{at}: {value!r} is no {type_}"
        assert type_ == "bool" or not isinstance(value, bool), at
        return value
    model = getattr(client, type_)
    names = {json: python for python, json in model.attribute_map.items()}
    assert isinstance(value, dict), at
    assert value.keys() <= names.keys(), f"{at}: unknown {sorted(value.keys() - names.keys())}"
    fields = {
        names[k]: strict(v, model.openapi_types[names[k]], f"{at}.{k}") for k, v in value.items()
    }
    # refuses what is missing
    return model(**fields)


@pytest.mark.parametrize(
    ("text", "engine"),
    [
        (ONE, "job"),
        (without_first_role(), "job"),
        (completion(-1), "job"),
        (TOLERANT, "job"),
        (TEXT, "pod"),
        (ONE, "pod"),
    ],
)
def test_no_field_is_unknown_to_kubernetes(text: str, engine: Engine) -> None:
    """Secrets, ConfigMap, Pods and Jobs have known fields of the right kind, and all they need."""
    job = job_of(text)
    more: dict[str, Any] = {"log_host_path": "/logs", "pod": APP_IS_ROOT, "image_volume": True}
    for each in make_objects(job, options(job, engine, **more)):
        strict(each, f"V1{each['kind']}", each["kind"])


@pytest.mark.parametrize(("text", "engine"), [(TEXT, "jobset"), (TEXT, "framework")])
def test_the_parts_that_controllers_hand_on(text: str, engine: Engine) -> None:
    """The Jobs in a JobSet and the Pods in a Framework are what Kubernetes will be given."""
    job = job_of(text)
    *others, workload = make_objects(job, options(job, engine))
    for each in others:
        strict(each, f"V1{each['kind']}", each["kind"])
    if engine == "jobset":
        for each in workload["spec"]["replicatedJobs"]:
            strict(each["template"]["spec"], "V1JobSpec", each["name"])
    else:
        for role in workload["spec"]["taskRoles"]:
            strict(role["task"]["pod"], "V1PodTemplateSpec", role["name"])


@pytest.mark.parametrize(
    "path",
    [("spec", "podFailurePolicy"), ("spec",), ("spec", "template", "spec"), ("metadata",)],
    ids=".".join,
)
def test_an_unknown_field_is_found(path: tuple[str, ...]) -> None:
    """The check itself sees a field that does not exist, at any depth."""
    job = job_of(ONE)
    workload: Any = make_objects(job, options(job, "job"))[-1]
    strict(workload, "V1Job", "Job")
    inner = workload
    for step in path:
        inner = inner[step]
    inner["notThere"] = 1
    with pytest.raises(AssertionError, match="notThere"):
        strict(workload, "V1Job", "Job")

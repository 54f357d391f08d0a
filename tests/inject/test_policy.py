"""The admission policies have only fields of the API, and put into a Pod what `pairun inject` puts.

Their expressions are not evaluated here: no API server of this laboratory knows them.
"""

from __future__ import annotations

import importlib
import re

import pytest
import yaml

from pairun.inject.podspec import INIT, PROGRAM, SEPARATOR, VOLUME
from tests.inject.test_schemas import unknown
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

"""The published schemas are what editors can use, and fit the project's own files."""

from __future__ import annotations

import pathlib
from typing import Any

import jsonschema
import pytest
import yaml

from pairun.cli.schema import schema

ROOT = pathlib.Path(__file__).parents[2]
FILES = [
    *(
        ("job", p)
        for p in sorted((ROOT / "examples").glob("*.yaml"))
        # Mistakes are what forbidden.yaml is for.
        if "protocolVersion" in p.read_text() and p.stem != "forbidden"
    ),
    *(("playbook", ROOT / "playbooks" / name) for name in ("init.yaml", "runtime.yaml")),
    ("policy", ROOT / "playbooks/policy.yaml"),
    *(("plugin-spec", p) for p in sorted((ROOT / "plugin_specs").glob("*.yaml"))),
]


def _schema(name: str) -> dict[str, Any]:
    return schema(name, [])


@pytest.mark.parametrize("name", ["job", "playbook", "policy", "plugin-spec", "extras"])
def test_a_schema_is_valid_itself(name: str) -> None:
    """Each file is a schema of the draft that it names, or of the latest."""
    jsonschema.validators.validator_for(_schema(name)).check_schema(_schema(name))


@pytest.mark.parametrize(
    ("name", "file"), FILES, ids=lambda v: v.name if isinstance(v, pathlib.Path) else v
)
def test_the_projects_own_files_fit_their_schema(name: str, file: pathlib.Path) -> None:
    """An editor marks nothing in a file that is right."""
    its = _schema(name)
    validator = jsonschema.validators.validator_for(its)(its)
    assert [e.message for e in validator.iter_errors(yaml.safe_load(file.read_text()))] == []


def test_an_editor_marks_a_misspelt_key() -> None:
    """A key that the protocol lacks does not fit."""
    job = yaml.safe_load((ROOT / "examples/hello.yaml").read_text())
    job["taskRole"] = job.pop("taskRoles")
    assert list(jsonschema.Draft7Validator(_schema("job")).iter_errors(job))


def test_every_key_of_a_job_has_a_description() -> None:
    """An editor shows what a key means, in the job and in a role."""
    job = _schema("job")
    (role,) = job["properties"]["taskRoles"]["patternProperties"].values()
    resources = role["properties"]["resourcePerInstance"]
    for properties in (job["properties"], role["properties"], resources["properties"]):
        for key, its in properties.items():
            if key != "protocolVersion":
                assert its.get("description"), key


def test_an_editor_marks_a_misspelt_keyword_of_an_override() -> None:
    """The section extras.pairun is part of the job's schema."""
    job = yaml.safe_load((ROOT / "examples/override.yaml").read_text())
    job["extras"]["pairun"]["init"][0]["retrys"] = 3
    validator = jsonschema.validators.validator_for(_schema("job"))(_schema("job"))
    assert list(validator.iter_errors(job))

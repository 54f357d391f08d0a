"""Schemas without a package: whatever is called fitting or valid, jsonschema calls so, too."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pairun.job.protocol import JOB_SCHEMA
from pairun.playbook.document.plainschema import fits
from pairun.playbook.document.scalars import Timestamp
from tests.effort import cases

NAMES = st.sampled_from(["a", "b", "x-1", "tasks"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from([0.5, 1.0]) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
TYPES = ["array", "boolean", "integer", "null", "number", "object", "string"]
COUNTS = st.integers(0, 3)


def keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Schemas of the keywords that are known, and of one that is not."""
    by_name = st.dictionaries(NAMES, inner, max_size=2)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(TYPES)
            | st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True),
            "enum": st.lists(VALUES, min_size=1, max_size=3),
            "const": VALUES,
            "properties": by_name,
            "patternProperties": st.dictionaries(st.sampled_from(["^x-", "a"]), inner, max_size=2),
            "additionalProperties": inner,
            "propertyNames": inner,
            "required": st.lists(NAMES, max_size=2, unique=True),
            "items": inner,
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "if": inner,
            "then": inner,
            "else": inner,
            "$ref": st.just("#/$defs/one"),
            "pattern": st.sampled_from(["^a", "b$"]),
            "minimum": st.integers(-1, 2),
            "maximum": st.integers(-1, 2),
            "minLength": COUNTS,
            "maxLength": COUNTS,
            "minItems": COUNTS,
            "maxItems": COUNTS,
            "minProperties": COUNTS,
            "title": st.just("a title"),
            "default": VALUES,
        },
    )


SCHEMAS = st.recursive(st.booleans(), keywords, max_leaves=4).filter(lambda s: isinstance(s, dict))


@settings(max_examples=cases(400), deadline=None)
@given(VALUES, SCHEMAS)
@pytest.mark.slow
def test_what_fits_is_valid(value: Any, schema: dict[str, Any]) -> None:
    """Nothing is called fitting that jsonschema refuses."""
    schema = {**schema, "$defs": {"one": {"type": ["string", "object"]}}}
    if fits(value, schema):
        Draft202012Validator(schema).validate(value)


@settings(max_examples=cases(150), deadline=None)
@given(VALUES)
def test_a_protocol_document_fits_where_it_is_valid(value: Any) -> None:
    """For the schema of job files there is no doubt left but about numbers with a fraction."""
    role = {"dockerImage": "image", "resourcePerInstance": value, "commands": ["true"]}
    job = {"protocolVersion": 2, "name": "job", "type": "job", "taskRoles": {"worker": role}}
    assert fits(job, JOB_SCHEMA) == Draft202012Validator(JOB_SCHEMA).is_valid(job)


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (1, {"oneOf": [{"const": 1}]}),
        (1.0, {"enum": [1]}),
        (Timestamp("2026-01-02T00:00:00.000Z"), {"type": "string"}),
        (1, {"$ref": "https://example.com/schema"}),
        (1, {"$ref": "#/$defs/missing"}),
    ],
)
def test_what_only_the_package_can_say_does_not_fit(value: Any, schema: dict[str, Any]) -> None:
    """An unknown keyword, a distant schema and a doubtful value are left to jsonschema."""
    assert not fits(value, schema)

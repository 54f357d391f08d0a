"""The ports of a Pod: the annotation and the numbers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairun.kube.ports import PortPlan, port_annotation

UID = "f1020521-9bda-11ea-830b-000d3ab25bb6"


def test_a_port_is_the_published_hash() -> None:
    """The numbers of the original's fixture."""
    ports = PortPlan(port_annotation({"tcp": 2, "ssh": 1}, (20000, 40000))).of(UID, 0)
    assert ports == {"tcp": (29877, 22353), "ssh": (39080,)}
    assert PortPlan(port_annotation({"tcp": 2}, (20000, 40000))).of(None, 0) == {}


def test_ports_of_the_old_form_are_counted_off() -> None:
    """Start, plus count times index; no Pod is needed."""
    plan = PortPlan(
        json.dumps({"http": {"start": 3000, "count": 2}, "ssh": {"start": 9, "count": 0}})
    )
    assert plan.of(None, 3) == {"http": (3006, 3007), "ssh": ()}
    assert plan.range is None


@given(st.uuids(), st.integers(1, 5), st.integers(0, 60000), st.integers(1, 5000))
def test_ports_stay_in_their_range(uid: Any, count: int, first: int, width: int) -> None:
    plan = PortPlan(port_annotation({"p": count}, (first, first + width)))
    assert plan.range == (first, first + width)
    assert all(first <= port < first + width for port in plan.of(str(uid), 0)["p"])


BAD_ANNOTATIONS = [
    "x",
    "[]",
    '{"p": 1}',
    '{"p": {"count": 1}}',
    '{"schedulePortStart": 5, "schedulePortEnd": 5, "ports": {}}',
    port_annotation({"p": -1}, (15000, 40000)),
    port_annotation({"p": 99999}, (15000, 40000)),
    port_annotation({"p": 600, "q": 600}, (15000, 40000)),
    '{"p": {"start": 1, "count": 99999}}',
]


@pytest.mark.parametrize("annotation", BAD_ANNOTATIONS)
def test_an_annotation_that_makes_no_sense_is_named(annotation: str) -> None:
    with pytest.raises(ValueError, match="port-scheduling-spec"):
        PortPlan(annotation)


def test_the_annotation_is_written_as_the_rest_server_does() -> None:
    """Compact JSON, in the order that OpenPAI's has."""
    assert port_annotation({"http": 2}, (15000, 40000)) == (
        '{"schedulePortStart":15000,"schedulePortEnd":40000,"ports":{"http":{"count":2}}}'
    )

"""The options that set a Pod's settings."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from pairun.cli.podoptions import add_pod_arguments, pod_flags
from pairun.errors import PairunError


def flags(*argv: str) -> Any:
    """What some options set, as plain data."""
    parser = argparse.ArgumentParser()
    add_pod_arguments(parser)
    node = pod_flags(parser.parse_args(argv))
    return None if node is None else node.plain()


@pytest.mark.parametrize(
    ("argv", "pod"),
    [
        ((), None),
        (("--queue", "a"), {"queue": "a"}),
        (("--priority-class", "high"), {"priority_class": "high"}),
        (
            ("--node-selector", "a=b", "--node-selector", "c=d=e"),
            {"node_selector": {"a": "b", "c": "d=e"}},
        ),
        (
            ("--toleration", "a=b:NoSchedule", "--toleration", "c"),
            {
                "tolerations": [
                    {"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"},
                    {"key": "c", "operator": "Exists"},
                ]
            },
        ),
        (("--shm", "1Gi"), {"shm": "1Gi"}),
        (("--app-uid", "5"), {"security": {"run_as_user": 5}}),
        (("--host-network",), {"host_network": True}),
        (("--no-host-network",), {"host_network": False}),
        (("--suspend",), {"suspend": True}),
        (("--pod-security", "restricted"), {"pod_security": "restricted"}),
        (
            ("--init-limits", "cpu=2", "--init-requests", "memory=1Gi"),
            {"init_resources": {"requests": {"memory": "1Gi"}, "limits": {"cpu": "2"}}},
        ),
    ],
)
def test_an_option_is_a_setting(argv: tuple[str, ...], pod: dict[str, Any] | None) -> None:
    """Each option has the form that people know from kubectl."""
    assert flags(*argv) == pod


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--node-selector", "a"), "must be KEY=VALUE"),
        (("--shm", "much"), "'shm' must be text such as 500m or 2 or 2Gi, not 'much'"),
        (("--toleration", "!!"), "must be text such as gpu or example.com/gpu, not '!!'"),
        (("--toleration", "example.com/gpu/a"), "must be text such as gpu"),
        (("--init-requests", "cpu"), "--init-requests 'cpu' must be KEY=VALUE"),
        (("--init-requests", "cpu=lots"), "must be text such as 500m or 2 or 2Gi, not 'lots'"),
        (("--app-uid", "-1"), "'run_as_user' must be at least 0"),
        (("--app-uid", str(2**31)), "'run_as_user' must be at most"),
        (("--toleration", "a:Never"), "'effect' must be one of"),
    ],
)
def test_a_value_that_the_setting_does_not_take(argv: tuple[str, ...], message: str) -> None:
    """It is an error of usage that names the setting."""
    with pytest.raises(PairunError) as refused:
        flags(*argv)
    [problem] = refused.value.problems
    assert problem.id == "PR801"
    assert message in problem.message
    assert str(problem.place).startswith("--") or problem.place is None

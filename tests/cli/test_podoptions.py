"""``--set`` for the Pods' settings, and the options that it replaces."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from pairun.cli.objectoptions import add_pod_arguments, given_settings
from pairun.errors import PairunError


def given(*argv: str) -> Any:
    """What some options set, as plain data."""
    parser = argparse.ArgumentParser()
    add_pod_arguments(parser)
    node = given_settings(parser.parse_args(argv))
    return None if node is None else node.plain()


APP = "spec.containers.app"
SET: list[tuple[list[str], dict[str, Any] | None]] = [
    ([], None),
    (["queue=a"], {"queue": "a"}),
    (["spec.priorityClassName=high"], {"spec": {"priorityClassName": "high"}}),
    (
        ["spec.nodeSelector.a.b/c=1", "spec.nodeSelector.d=e=f"],
        {"spec": {"nodeSelector": {"a.b/c": "1", "d": "e=f"}}},
    ),
    (["spec.tolerations=[{key: a}]"], {"spec": {"tolerations": [{"key": "a"}]}}),
    (["shm=1Gi", "shm=2Gi"], {"shm": "2Gi"}),
    (["suspend=true"], {"suspend": True}),
    (["metadata.labels.on=true"], {"metadata": {"labels": {"on": "true"}}}),
    (["spec.schedulerName="], {"spec": {"schedulerName": ""}}),
    (["queue=null"], {"queue": None}),
    (
        [f"{APP}.resources.limits.nvidia.com/gpu=2", f"{APP}.securityContext.runAsUser=5"],
        {
            "spec": {
                "containers": {
                    "app": {
                        "resources": {"limits": {"nvidia.com/gpu": "2"}},
                        "securityContext": {"runAsUser": 5},
                    }
                }
            }
        },
    ),
    (
        ["spec.volumes=[{name: a, emptyDir: {}}]", "spec.volumes.b.secret.secretName=s"],
        {"spec": {"volumes": {"a": {"emptyDir": {}}, "b": {"secret": {"secretName": "s"}}}}},
    ),
]


@pytest.mark.parametrize(("settings", "pod"), SET)
def test_a_path_and_its_value(settings: list[str], pod: dict[str, Any] | None) -> None:
    """The value is YAML, or the text itself where the field is a text; lists merge by name."""
    assert given(*(word for each in settings for word in ("--set", each))) == pod


@pytest.mark.parametrize(
    ("setting", "message", "hint"),
    [
        ("queue", "--set 'queue' must be PATH=VALUE", ""),
        ("=a", "must be PATH=VALUE", ""),
        ("quue=a", "there is no setting 'quue' of Pods", "did you mean 'queue'?"),
        ("spec.toleration=[]", "no setting 'spec.toleration'", "did you mean 'tolerations'?"),
        ("shm=much", "'shm' must be text such as 2Gi or 512Mi, not 'much'", ""),
        (f"{APP}.securityContext.runAsUser=-1", "'runAsUser' must be at least 0", ""),
        (f"{APP}.securityContext.runAsUser={2**31}", "'runAsUser' must be at most", ""),
        ("spec.tolerations=[{effect: Never}]", "'effect' must be one of", ""),
        ("spec.tolerations=[", "not YAML", ""),
        ("node_selector={a: b}", "there is no setting 'node_selector' of Pods", ""),
    ],
)
def test_a_path_or_value_that_is_wrong(setting: str, message: str, hint: str) -> None:
    """It is an error of usage that names the path or the field."""
    with pytest.raises(PairunError) as refused:
        given("--set", setting)
    [problem] = refused.value.problems
    assert problem.id == "PR801"
    assert message in problem.message
    assert hint in (problem.hint or "")


@pytest.mark.parametrize(
    ("argv", "new"),
    [
        ("--queue a", "queue=a"),
        ("--scheduler-name s", "spec.schedulerName=s"),
        ("--priority-class high", "spec.priorityClassName=high"),
        ("--node-selector a.b/c=d", "spec.nodeSelector.a.b/c=d"),
        (
            "--toleration a=b:NoSchedule",
            "'spec.tolerations=[{key: a, operator: Equal, value: b, effect: NoSchedule}]'",
        ),
        ("--toleration c", "'spec.tolerations=[{key: c, operator: Exists}]'"),
        ("--runtime-class nvidia", "spec.runtimeClassName=nvidia"),
        ("--shm 1Gi", "shm=1Gi"),
        ("--image-pull-policy Always", f"{APP}.imagePullPolicy=Always"),
        ("--init-requests memory=1Gi", "init_resources.requests.memory=1Gi"),
        ("--init-limits cpu=2", "init_resources.limits.cpu=2"),
        ("--service-account trainer", "spec.serviceAccountName=trainer"),
        ("--app-uid 5", f"{APP}.securityContext.runAsUser=5"),
        ("--pod-security restricted", "pod_security=restricted"),
        ("--host-network", "spec.hostNetwork=true"),
        ("--no-host-network", "spec.hostNetwork=false"),
        ("--suspend", "suspend=true"),
        ("--no-suspend", "suspend=false"),
    ],
)
def test_an_option_of_the_last_release(argv: str, new: str) -> None:
    """The error shows what to write instead, and that is accepted."""
    with pytest.raises(PairunError) as refused:
        given(*argv.split())
    [problem] = refused.value.problems
    assert problem.id == "PR801"
    assert problem.hint == f"write --set {new}"
    assert given("--set", new.strip("'")) is not None

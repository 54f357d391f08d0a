"""All problems of a job come at once: a mistake in a role hides none in plugins and overrides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pairun.errors import render
from pairun.playbook.content import open_content
from pairun.playbook.effective import Layers
from pairun.review.jobreview import JobReview, review_data
from pairun.secrets.vault import Vault

if TYPE_CHECKING:
    from tests.desk import Desk

GIT = "- {plugin: git, parameters: {repo_uri: 'https://a/b'}}\n"
OVERRIDES = [
    "init: [{patch: barierr, retries: 1, timeout: 1m}]",
    "init: [{disable: job_environment}]",
    "init: [{patch: barrier, retries: 1}]",
    "init: [{append: true, name: N, cmd: {argv: [a]}}]",
    "runtime: [{append: true, name: N, timeout: 600, cmd: {argv: [a]}}]",
    "runtime: [{append: true, name: N, cmd: {argvv: [a]}}]",
    "runtime: [{append: true, name: N, cmd: {script: '{{ 1 + }}'}}]",
    "runtime: [{patch: user_command, args: {nounset: 1}}]",
    "init: [{patch: git, retries: -1}]",
    "init: [{patch: git, args: {depht: 1}}]",
    "vars: {a: 1}",
    "nothing: 1",
    "pod: {queue: 5}",
    "pod: {shmm: 1}",
    "pod: {roles: {other: {queue: a}}}",
    "pod: {spec: {hostNetwork: true}}",
]
PLUGINS = [
    "- {plugin: gitt}\n",
    "- {plugin: git, parameters: {}}\n",
    "- {plugin: git, parameters: {repo_uri: 5}}\n",
    "- {plugin: git, parameters: {repo_uri: a, cloen_dir: b}}\n",
]


def _review(text: str) -> JobReview:
    layers = Layers(open_content([], {}))
    return review_data(text.encode(), "job.yaml", layers, "user", [], vault=Vault())


def _beyond(sound: str) -> tuple[list[str], list[str]]:
    """The problems of a job, and those that are left of them beside a mistake in its role."""
    broken = sound.replace("instances: 2", "instances: 0")
    assert broken != sound
    first = [render(p) for p in _review(sound).problems]
    second = [
        render(p) for p in _review(broken).problems if "taskRoles.worker.instances" not in p.message
    ]
    return first, second


@pytest.mark.parametrize("overrides", OVERRIDES)
def test_overrides_of_a_job_that_is_not_valid(desk: Desk, overrides: str) -> None:
    """The same problems, places and hints as in a valid job."""
    first, second = _beyond(desk.job(overrides, plugins=GIT))
    assert first == second
    if "privileged" not in overrides:
        assert first


@pytest.mark.parametrize("plugin", PLUGINS)
def test_plugins_of_a_job_that_is_not_valid(desk: Desk, plugin: str) -> None:
    """An unknown plugin and parameters that do not fit; what patches them is no mistake too."""
    first, second = _beyond(desk.job(plugins=plugin))
    assert first == second != []
    first, second = _beyond(desk.job("init: [{patch: git, retries: 1}]", plugins=plugin))
    assert [line for line in second if "PR401" in line] == [
        line for line in first if "PR401" in line
    ]


def test_what_the_rest_decides_is_left_out(desk: Desk) -> None:
    """Tags stand for what they will be, and which ids plugins get the role decides."""
    tags = "- {plugin: ssh, parameters: {jobssh: true, sshbarrierTimeout: <% $parameters.t %>}}\n"
    _, second = _beyond(desk.job(plugins=tags, more="parameters: {t: 5}\n"))
    assert second == []


def test_a_file_that_is_no_job() -> None:
    """Neither text that is not YAML nor a job of another protocol is looked at further."""
    for text in ("a: [", "", "[]", "jobName: a\ntaskRoles: []\nextras: {pairun: {x: 1}}\n"):
        assert "pairun" not in "".join(p.message for p in _review(text).problems)


_VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 5) | st.sampled_from(["a", "git", "<% $x %>", "{{ y }}", ""]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["patch", "disable", "append", "name", "cmd", "args", "plugin", "parameters",
                         "roles", "init", "runtime", "pod", "queue", "retries", "on_exit"]), inner, max_size=4),
    max_leaves=10,
)  # fmt: skip


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60
)
@given(_VALUES, _VALUES, _VALUES)
def test_any_extras(desk: Desk, overrides: Any, plugins: Any, prerequisite: Any) -> None:
    """Whatever stands there, the review ends with problems."""
    job = yaml.safe_load(desk.job_text)
    job["taskRoles"]["worker"]["instances"] = 0
    job["prerequisites"].append(
        {"name": "p", "type": "data", "plugin": "cmd", "callbacks": prerequisite}
    )
    job["extras"] = {"pairun": overrides, "com.microsoft.pai.runtimeplugin": plugins}
    assert _review(yaml.safe_dump(job)).problems.errors

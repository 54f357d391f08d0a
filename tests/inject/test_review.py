"""`pairun --dry-run` reviews an injected manifest as its init containers will plan it."""

from __future__ import annotations

from pairun.errors import Source
from pairun.playbook.content import open_content
from pairun.playbook.effective import Layers
from pairun.review.injectedreview import is_injected, review_injected
from pairun.review.jobreview import JobReview
from pairun.review.settings import NO_SETTINGS
from pairun.secrets.vault import Vault
from tests.inject.workloads import POD, injected

JOBSET = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train}
spec:
  replicatedJobs:
  - {name: leader, template: {spec: {template: {spec: {containers: [{name: m, image: a, command: [b]}]}}}}}
  - {name: work-er, replicas: 2, template: {spec: {template: {spec: {containers: [{name: m, image: a, command: [c]}]}}}}}
"""


def reviews(text: str) -> list[JobReview]:
    """The reviews of a manifest's Pods."""
    layers = Layers(open_content([], {}))
    source = Source("manifest.yaml", "job", text)
    return review_injected(source, layers, "user", NO_SETTINGS, vault=Vault())


def test_a_pod() -> None:
    """The command of the container is the last task, as it is written."""
    text = injected(POD, hold="30m")
    assert is_injected(text.encode())
    assert not is_injected(POD.encode())
    (review,) = reviews(text)
    assert not review.problems.errors
    runtime = review.tasks["main"]["runtime"]
    assert [t.id for t in runtime][-2:] == ["hold", "user_command"]


def test_a_gang() -> None:
    """Every role is reviewed, with its barrier and the gang's variables."""
    leader, worker = reviews(injected(JOBSET, barrier=True, env=["jax"], ssh=True))
    assert (list(leader.tasks), list(worker.tasks)) == (["leader"], ["worker"])
    init = {t.id: t.verdict.kind for t in worker.tasks["worker"]["init"]}
    assert init["barrier"] == "check"
    runtime = [t.id for t in worker.tasks["worker"]["runtime"]]
    assert runtime[-2:] == ["gang_environment", "user_command"]
    assert "ssh" in runtime


def test_the_policy_holds() -> None:
    """A playbook beyond the policy is an error of the review."""
    tasks = [{"patch": "user_command", "timeout": "1s"}]
    (review,) = reviews(injected(POD, playbook={"runtime": tasks}))
    assert [p.id for p in review.problems.errors] == ["PR402"]

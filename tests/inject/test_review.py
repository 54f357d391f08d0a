"""`pairun --dry-run` reviews an injected manifest as its init containers will plan it."""

from __future__ import annotations

import io

from pairun.errors import Source
from pairun.playbook.content import open_content
from pairun.playbook.effective import Layers
from pairun.report.jobreview_text import print_review
from pairun.review.injectedreview import review_injected
from pairun.review.jobreview import NO_SETTINGS, JobReview
from pairun.secrets.vault import Vault
from tests.inject.workloads import HOLD, POD, injected

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
    (review,) = reviews(injected(POD, playbook={"runtime": HOLD}))
    assert not review.problems.errors
    runtime = review.tasks["main"]["runtime"]
    assert [t.id for t in runtime][-2:] == ["look", "user_command"]


def test_a_gang() -> None:
    """Every role is reviewed, with its barrier and the gang's variables."""
    leader, worker = reviews(injected(JOBSET, barrier=True, env=["jax"], ssh=True))
    assert (list(leader.tasks), list(worker.tasks)) == (["leader"], ["worker"])
    init = {t.id: t.verdict.kind for t in worker.tasks["worker"]["init"]}
    assert init["barrier"] == "check"
    runtime = [t.id for t in worker.tasks["worker"]["runtime"]]
    assert runtime[-2:] == ["gang_environment", "user_command"]
    assert "ssh" in runtime


def test_the_barrier_after_a_restart_comes_first() -> None:
    """It stands before the tasks that need the addresses which it renews."""
    options = {"barrier": True, "env": ["jax"]}
    for ssh, expected in ((True, ["barrier_again", "ssh"]), (False, ["barrier_again"])):
        for review in reviews(injected(JOBSET, ssh=ssh, **options)):
            (tasks,) = review.tasks.values()
            assert not review.problems.errors
            runtime = [t.id for t in tasks["runtime"]][1:]
            assert runtime == [*expected, "gang_environment", "user_command"]


def test_the_policy_holds() -> None:
    """A playbook beyond the policy is an error of the review."""
    tasks = [{"patch": "user_command", "timeout": "1s"}]
    (review,) = reviews(injected(POD, playbook={"runtime": tasks}))
    assert [p.id for p in review.problems.errors] == ["PR402"]


TORCHRUN = POD.replace("""["sh", -c, 'exit 3']""", "[torchrun, train.py]")


def test_the_grace_time_of_the_pod_counts() -> None:
    """A review reads the Pod's grace time, not the playbook's."""
    long = TORCHRUN.replace(
        "  restartPolicy", "  terminationGracePeriodSeconds: 300\n  restartPolicy"
    )
    (review,) = reviews(injected(long))
    assert not list(review.problems)


def test_a_short_grace_time_is_shown_in_the_manifest() -> None:
    """The warning shows the command and the grace time of the manifest, nothing generated."""
    short = TORCHRUN.replace(
        "  restartPolicy", "  terminationGracePeriodSeconds: 20\n  restartPolicy"
    )
    text = injected(short)
    (review,) = reviews(text)
    (problem,) = review.problems
    assert problem.id == "PR921"
    assert "grace time is 14.4s" in problem.message
    places = [problem.place, *(place for _, place in problem.also)]
    lines = [text.splitlines()[place.line - 1].strip() for place in places if place]
    assert lines == [
        'command: ["/usr/local/pai/runtime", "--", torchrun, train.py]',
        "terminationGracePeriodSeconds: 20",
    ]
    assert "terminationGracePeriodSeconds" in (problem.hint or "")


def test_a_gang_is_named_by_its_size() -> None:
    """The review of a gang's Pod says how many Pods there are, and no place that nobody can open."""
    _, worker = reviews(injected(JOBSET, barrier=True))
    said = io.StringIO()
    print_review(worker, open_content([], {}), said, full=True)
    assert "one of 3 in the gang" in said.getvalue()
    assert "when = job.gang  ← engine a plain Pod, was" in said.getvalue()


def test_lists_of_anything() -> None:
    """A manifest with items that are no mappings is reviewed as far as it can be."""
    config = """{name: RUNTIME_CONFIG, value: '{"commands": ["true"]}'}"""
    spec = (
        f"{{initContainers: [x, {{name: pairun-init, env: [y, {config}, {{value: 3}}]}}], "
        "containers: [z, {name: m, env: [3]}]}"
    )
    text = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec: {spec}\n"
    (review,) = reviews(text)
    assert not review.problems.errors
    assert not reviews(text.replace(spec, "{initContainers: 5, containers: [z]}"))

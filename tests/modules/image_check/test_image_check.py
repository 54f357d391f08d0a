"""The module image_check, against a real HTTP server that plays a registry."""

from __future__ import annotations

import base64
import email.utils
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairun.host.context import HostContext
from pairun.host.worlds import ReviewContext
from pairun.module import (
    Failure,
    Fetched,
    Permanent,
    Secret,
    Skip,
    TimedOut,
    UnknownUntilRun,
)
from pairun.plan import Task
from pairun.review.taskreview import judge
from tests.effort import cases
from tests.modules.image_check.conftest import (
    BASIC,
    DIGEST,
    OCI,
    PASSWORD,
    USER,
    Asking,
    Part,
    Server,
    always,
    basic_only,
    fetches,
    index,
    login,
    open_to_all,
    refused,
    with_token,
)
from tests.webserver import Answer, Asked, Reply

if TYPE_CHECKING:
    from tests.modules.conftest import Harness


def test_an_image_that_is_there(registry: Server, ask: Callable[..., Asking]) -> None:
    """One HEAD of the manifest with every form in Accept, and no login to who did not ask."""
    registry.behaviour = open_to_all
    image = f"{registry.host}/team/image:V1.0_GPU"
    assert ask(image, login(registry.host)).message == f"{image} exists"
    (asked,) = registry.asked
    assert (asked.method, asked.path) == ("HEAD", "/v2/team/image/manifests/V1.0_GPU")
    assert asked.authorization is None
    for kind in ("oci.image.index.v1", "oci.image.manifest.v1", "list.v2", "manifest.v2"):
        assert f"{kind}+json" in asked.headers["accept"]


def test_a_digest_is_asked_for_by_digest(registry: Server, ask: Callable[..., Asking]) -> None:
    """Beside a digest the tag does not count."""
    registry.behaviour = open_to_all
    assert "exists" in ask(f"  {registry.host}/image:1@{DIGEST}\n").message
    assert registry.asked[0].path == f"/v2/image/manifests/{DIGEST}"


def test_an_explicit_http_prefix_is_plain_http(
    registry: Server, ask: Callable[..., Asking]
) -> None:
    """A registry without TLS is asked as the prefix says; https:// to it is trouble, no answer."""
    registry.behaviour = open_to_all
    assert "exists" in ask(f"http://{registry.host}/a").message
    assert ask(f"https://{registry.host}/a").unknown


def test_an_image_that_is_not_there(registry: Server, ask: Callable[..., Asking]) -> None:
    """A registry's 404 is definite, at the first try, and names the image."""
    registry.behaviour = always(Answer(404))
    said = refused(ask(f"{registry.host}/team/image:nope"))
    assert f"image {registry.host}/team/image:nope does not exist" in said
    assert "a private image needs a login" in said
    assert len(registry.manifests) == 1


def test_not_there_with_a_token(registry: Server, ask: Callable[..., Asking]) -> None:
    """After a token, 404 says "not there" and 401 or 403 "not for you"."""
    for status, words in ((404, "does not exist"), (401, "refuses"), (403, "refuses")):
        registry.behaviour = with_token(f"http://{registry.host}/token", then=status)

        def behave(asked: Asked, inner: Reply = registry.behaviour) -> Answer | None:
            return Answer(401) if asked.path == "/v2/" else inner(asked)

        registry.behaviour = behave
        assert words in refused(ask(f"{registry.host}/team/image", login(registry.host)))


def test_an_invalid_name_is_the_users(ask: Callable[..., Asking]) -> None:
    """The part that is wrong is shown, and nobody is asked."""
    assert "'Image' in the repository's name is wrong" in refused(ask("r.example/team/Image:1"))


def test_a_warning_does_not_fail(registry: Server, ask: Callable[..., Asking]) -> None:
    """With the policy warn a definite no is harmless."""
    registry.behaviour = always(Answer(404))
    said = ask(f"{registry.host}/a", policy="warn")
    assert isinstance(said.failure, Permanent)
    assert said.failure.message == f"image {registry.host}/a:latest does not exist"
    assert said.harmless
    assert ask("A/b/C", policy="warn").harmless


def test_off_asks_nobody(registry: Server, ask: Callable[..., Asking]) -> None:
    """With the policy off, there is nothing to do, whatever the image's name."""
    with pytest.raises(Skip):
        ask(f"{registry.host}/Not A Name", policy="off")
    assert registry.asked == []


def test_busy(registry: Server, ask: Callable[..., Asking]) -> None:
    """A 429 says how long the executor must wait, in seconds or as a date."""
    date = email.utils.formatdate(time.time() + 40, usegmt=True)
    for asked_for, least, most in (("3600", 3600, 3600), (date, 20, 40)):
        registry.behaviour = always(Answer(429, {"Retry-After": asked_for}))
        said = ask(f"{registry.host}/a")
        assert said.unknown == f"{registry.host} answered 429"
        assert said.failure is not None
        assert said.failure.retry_after_s is not None
        assert least <= said.failure.retry_after_s <= most


@pytest.mark.parametrize(
    ("image", "registries", "outcome"),
    [
        ("r.example/a", {"*.azurecr.io": "off", "r.example": "warn"}, "warn"),
        ("r.example:5000/a", {"r.example": "warn"}, "warn"),
        ("R.Example:5000/a", {"r.example:5000": "off"}, "off"),
        ("r.example:5000/a", {"r.example:5001": "off"}, "policy"),
        ("t.azurecr.io/a", {"*.AZURECR.io": "off"}, "off"),
        ("azurecr.io.example/a", {"*.azurecr.io": "off"}, "policy"),
        ("r.example/a", {"r.*": "fail", "*": "off"}, "fail"),
        ("r.example/a", {"*": "off", "r.*": "fail"}, "off"),
        ("rxexample.org/a", {"r.example*": "off"}, "policy"),
        ("ubuntu", {"docker.io": "warn"}, "warn"),
        ("docker.io/a/b", {"index.docker.io": "off"}, "off"),
        ("[::1]:5000/a", {"[::1]": "off"}, "off"),
        ("Not/A/Name", {"*": "off"}, "policy"),
        ("r.example/a", {}, "policy"),
    ],
)
@pytest.mark.parametrize("policy", ["off", "warn", "fail"])
def test_a_registrys_own_policy_wins(
    harness: Harness,
    monkeypatch: pytest.MonkeyPatch,
    image: str,
    registries: dict[str, str],
    outcome: str,
    policy: str,
) -> None:
    """The first entry that fits decides, stricter or looser; `policy` is for all other registries."""
    args = {"image": image, "policy": policy, "registries": registries}
    expected = policy if outcome == "policy" else outcome
    try:
        with pytest.raises(Permanent):
            fetches(harness, monkeypatch, args, [Fetched(404, {}, b""), Fetched(200, {}, b"")])
    except Skip:
        assert expected == "off"
        return
    harmless = "permanent" in harness.make("image_check", args).harmless
    assert expected == ("warn" if harmless else "fail")


@settings(max_examples=cases(150))
@given(data=st.data())
@pytest.mark.slow
def test_what_a_server_repeats_is_shown_nowhere(
    shared_server: Server, part: Part, data: st.DataObject
) -> None:
    """A server that puts login and token into anything it may choose gets neither into a message."""
    host = shared_server.host
    words = ["s3cret", "TOK-1234", base64.b64encode(b"robot:s3cret").decode().rstrip("=")]
    word = data.draw(st.sampled_from(words))
    places = [
        f"Basic realm={word}", f"{word}", f"{word} {word}={word}", f'Bearer realm="http://{word}/"',
        f'Bearer realm="http://{host}/token",service="{word}"', f'Bearer realm="{word}"',
        f'Bearer realm="http://{host}/token/{word}"', f'Bearer realm="http://{word}@{host}/"', "Basic",
    ]  # fmt: skip
    said = json.dumps({"token": word, "errors": [{"message": word}]}).encode()
    variants = index(f"linux/{word}", f"{word}/amd64", f"linux/arm/{word}")
    answers = st.builds(
        Answer,
        st.sampled_from([200, 200, 401, 401, 302, 307, 404, 400, 403, 429, 503]),
        st.fixed_dictionaries(
            {},
            optional={
                "WWW-Authenticate": st.sampled_from(places),
                "Location": st.sampled_from(
                    [f"http://{word}/", f"http://x.{word}.invalid:1/", f"//{host}/{word}", word]
                ),
                "Retry-After": st.sampled_from([word, "0"]),
                "Content-Type": st.sampled_from([word, "application/json"]),
                "Docker-Content-Digest": st.just(word),
            },
        ),
        st.sampled_from([said, variants, word.encode(), b"{}"]),
    )
    script = data.draw(st.lists(answers, min_size=3, max_size=9))
    shared_server.asked.clear()
    shared_server.behaviour = lambda _: script[(len(shared_server.asked) - 1) % len(script)]
    check = part("").ImageCheck(
        image=f"{host}/a",
        auth={"username": "robot", "password": Secret("s3cret"), "registry": host},
        platform=data.draw(st.sampled_from([None, "linux/amd64"])),
    )
    log: list[str] = []
    ctx = HostContext({"PATH": "/bin"}, "/nowhere", None, log.append)
    try:
        log.append(repr(check.check(ctx)))
    except Failure as e:
        log += [e.message, str(e.hint), str(e), repr(e)]
    shown = "\n".join([*log, repr(check)]).lower()
    assert not [w for w in words if w.lower() in shown]


def test_a_registry_that_hangs(registry: Server, ask: Callable[..., Asking]) -> None:
    """The timeout holds for all requests of an attempt together."""
    registry.behaviour = lambda _: None
    said = ask(f"{registry.host}/a", timeout="300ms")
    assert isinstance(said.failure, TimedOut)
    assert "did not answer within" in said.unknown


def test_the_attempts_own_time_counts(registry: Server, ask: Callable[..., Asking]) -> None:
    """The verdict comes before the attempt is stopped."""
    registry.behaviour = lambda _: None
    said = ask(f"{registry.host}/a", deadline=time.monotonic() + 1.3)
    assert "did not answer" in said.unknown
    assert ask(f"{registry.host}/a", deadline=time.monotonic()).unknown


def test_nobody_there(registry: Server, ask: Callable[..., Asking]) -> None:
    """No connection, and no such host, are unknown."""
    assert ask("127.0.0.1:1/a").unknown
    assert ask("no-such-host.invalid/a", timeout="3s").unknown


@pytest.mark.parametrize(
    "args",
    [
        {"auth": {"registryuri": "x"}},
        {"timeout": "0s"},
        {"policy": "maybe"},
        {"registries": {"r.example": "maybe"}},
        {"registries": {"https://r.example": "off"}},
        {"platform": ""},
        {"platform": "amd64"},
        {"platform": "linux/pdp11"},
        {"platform": "linux/arm/7/8"},
    ],
)
def test_arguments_that_cannot_work(harness: Harness, args: dict[str, Any]) -> None:
    """They are refused before anything runs."""
    assert len(harness.problems("image_check", {"image": "a", **args})) == 1


def test_a_login_that_comes_as_one_secret(registry: Server, ask: Callable[..., Asking]) -> None:
    """An expression that touches a secret is one secret: the mapping within counts."""
    registry.behaviour = basic_only
    auth: Any = Secret(json.dumps(login(registry.host)))
    assert "exists" in ask(f"{registry.host}/a", auth).message
    assert [a.authorization for a in registry.asked] == [None, BASIC]


@pytest.mark.parametrize("text", ["s3cret", "[1]", "5", "[" * 100_000])
def test_a_secret_that_is_no_login(harness: Harness, text: str) -> None:
    """It is refused, and not shown."""
    (problem,) = harness.problems("image_check", {"image": "a", "auth": Secret(text)})
    assert "not a secret" in problem.message
    assert "s3cret" not in f"{problem}"


def job(patch: dict[str, Any]) -> dict[str, Any]:
    """A job with a login, which patches arguments of the check."""
    auth = {"username": USER, "password": "<% $secrets.pw %>", "registryuri": "r.example"}
    extras = {"pairun": {"init": [{"patch": "image_check", "args": patch}]}} if patch else {}
    return {
        "protocolVersion": 2, "name": "j", "type": "job", "secrets": {"pw": PASSWORD},
        "extras": extras,
        "prerequisites": [
            {"name": "i", "type": "dockerimage", "uri": "r.example/team/train:1", "auth": auth}
        ],
        "taskRoles": {
            "w": {
                "dockerImage": "i", "commands": ["ls"],
                "resourcePerInstance": {"cpu": 1, "memoryMB": 128, "gpu": 0},
            }
        },
    }  # fmt: skip


def test_the_default_playbook_takes_the_login_of_a_job(tmp_path: Path) -> None:
    """A job whose login comes from its secrets is valid, and the review shows no password."""
    (tmp_path / "job.yaml").write_text(json.dumps(job({})))
    done = subprocess.run(
        [sys.executable, "-m", "pairun", "--dry-run", "--json", "job.yaml"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    tasks = json.loads(done.stdout)["roles"]["w"]["init"]
    (task,) = [t for t in tasks if t["id"] == "image_check"]
    assert task["args"]["image"] == "r.example/team/train:1"
    assert json.dumps(PASSWORD)[1:-1] not in done.stdout
    assert PASSWORD not in str(task)


def test_a_review_asks_nobody(harness: Harness) -> None:
    """In the empty Pod it is a check, and a fetch is unknown until run, without credentials."""
    ctx = ReviewContext({}, str(harness.pai_dir))
    cls = harness.load("image_check")
    task = Task(id="i", name="n", module="image_check", args={"image": "a"}, where="x:1")
    assert judge(task, cls, ctx).kind == "check"
    with pytest.raises(UnknownUntilRun, match="depends on the answer of host:1"):
        ctx.fetch("https://user:pw@host:1/path")


PAGE = (Path(__file__).parents[3] / "docs" / "parts" / "image_check.md").read_text()
ROWS = {
    row[0]: row[1:]
    for row in re.findall(r"^\| (.*?) \| (ok|fails|ignored) \| `(.*)` \|$", PAGE, re.MULTILINE)
}
CONFIG = Answer(200, {}, json.dumps({"config": {"digest": DIGEST}}).encode())
SCENES: dict[str, tuple[Answer, dict[str, Any]]] = {
    "has the image": (Answer(200, OCI), {}),
    "has no such tag, digest or repository": (Answer(404), {}),
    "requires a login and the job has none": (Answer(401, {"WWW-Authenticate": "Basic"}), {}),
    "refuses the job's login": (Answer(401, {"WWW-Authenticate": "Basic"}), {"auth": True}),
    "has the image, but not for `platform`": (
        Answer(200, OCI, index("linux/amd64", "linux/arm64")), {"platform": "linux/s390x"},
    ),
    "is not asked: the name is not valid": (Answer(200), {"path": "team/Train:1"}),
    "answers 429": (Answer(429), {}),
    "answers 500 to 599, or 408": (Answer(503), {}),
    "cannot be reached": (Answer(200), {"closed": True}),
    "does not answer in time": (Answer(-1), {"timeout": "200ms"}),
    "answers 404 as any web server would": (Answer(404), {"root": Answer(404)}),
    "answers with a web page": (Answer(200, {"Content-Type": "text/html"}), {}),
    "answers 401 and names no known login": (Answer(401), {}),
    "answers 403 and did not ask for a login": (Answer(403), {}),
    "redirects to another server that does not have it": (Answer(307, {"Location": "ELSEWHERE"}), {}),
    "redirects in a circle": (Answer(307, {"Location": "?"}), {}),
    "has a token service that is busy": (Answer(401, {"WWW-Authenticate": "TOKEN"}), {"token": 429}),
    "has a token service that redirects to another server": (
        Answer(401, {"WWW-Authenticate": "TOKEN"}), {"token": 302},
    ),
    "does not name the platforms of the image": (CONFIG._replace(headers=OCI), {"platform": "node"}),
}  # fmt: skip


def test_the_page_has_a_scene_for_every_row() -> None:
    """No row is without proof."""
    assert set(ROWS) == set(SCENES)


@pytest.mark.parametrize("row", SCENES)
def test_a_row_of_the_page(
    elsewhere: Server, shared_server: Server, ask: Callable[..., Asking], row: str
) -> None:
    """The user reads what the page says, and the outcome is the page's."""
    answer, args = SCENES[row][0], dict(SCENES[row][1])
    host = shared_server.host
    path, root = args.pop("path", "team/train:1"), args.pop("root", Answer(200))
    token = Answer(args.pop("token", 0), {"Location": f"http://{elsewhere.host}/"})
    words = {"ELSEWHERE": f"http://{elsewhere.host}/", "TOKEN": f'Bearer realm="http://{host}/t"'}
    answer = answer._replace(headers={k: words.get(v, v) for k, v in answer.headers.items()})
    elsewhere.behaviour = lambda _: Answer(404)

    def behave(asked: Asked) -> Answer | None:
        if asked.path == "/t":
            return token
        return root if asked.path == "/v2/" else answer if answer.status > 0 else None

    shared_server.behaviour = behave
    if args.pop("closed", False):
        host = "127.0.0.1:1"
    auth = login(host) if args.pop("auth", False) else None
    said = ask(f"{host}/{path}", auth, **args)
    outcome, text = ROWS[row]
    shown = said.failure.message if said.failure else said.message
    assert shown.replace(host, "registry.example.com") == text
    assert outcome == ("ok" if said.failure is None else "ignored" if said.harmless else "fails")


def test_the_patch_on_the_page(tmp_path: Path) -> None:
    """It changes the default playbook, and a job may not change it back."""
    (block,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "root/playbooks").mkdir(parents=True)
    (tmp_path / "root/playbooks/init.yaml").write_text(block)
    command = [sys.executable, "-m", "pairun", "--dry-run", "--json", "--root", "root", "job.json"]
    found = []
    patches: list[dict[str, Any]] = [{"policy": "warn"}, {"registries": {}}]
    for patch in patches:
        (tmp_path / "job.json").write_text(json.dumps(job(patch)))
        done = subprocess.run(
            command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
            capture_output=True, text=True,
        )  # fmt: skip
        found.append((done.returncode, json.loads(done.stdout)))
    (code, review), (refused_code, refusal) = found
    assert code == 0, review
    (task,) = [t for t in review["roles"]["w"]["init"] if t["id"] == "image_check"]
    assert task["args"]["registries"] == {
        "*.azurecr.io": "off",
        "registry.example.com:5000": "warn",
    }
    assert task["args"]["policy"] == "warn"
    assert refused_code == 1
    assert "image_check" in str(refusal["problems"])

"""From a kubeconfig to a cluster, or a problem that says why not."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from pairun.engines.kubernetes.kubeconfig import Access, connect
from pairun.errors import PairunError
from pairun.secrets.vault import Vault
from tests.engines.kubernetes.samples import (
    TOKEN,
    ids,
    kubeconfig,
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "the file does not exist"),
        ("", "not a kubeconfig in YAML"),
        (f"users: [{{token: {TOKEN}\n", "not a kubeconfig in YAML (line"),
        (f"- {TOKEN}\n", "not a kubeconfig in YAML"),
        ("{}\n", "it has no current context"),
        ("contexts: 5\n", "not a kubeconfig in YAML"),
        (
            f"users: [{{token: {TOKEN}}}]\ncontexts: [{{nix: {TOKEN}}}]\n",
            "not a kubeconfig in YAML",
        ),
    ],
)
def test_a_kubeconfig_that_is_none(tmp_path: Path, text: str | None, words: str) -> None:
    """Absent, empty, broken: said in one sentence that shows nothing of it."""
    path = tmp_path / "config"
    if text is not None:
        path.write_text(text)
    with pytest.raises(PairunError) as e:
        connect(Access(str(path)), Vault())
    assert ids(e) == ["PR786"]
    assert words in str(e.value)
    assert str(path) in str(e.value)
    assert TOKEN not in str(e.value)


def test_a_pod_without_a_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Who runs pairun in a Pod has no kubeconfig in mind."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    with pytest.raises(PairunError) as e:
        connect(Access(), Vault())
    assert ids(e) == ["PR786"]
    assert str(e.value).startswith("this Pod has no token at /var/run/secrets/")


@pytest.mark.parametrize(
    ("server", "context", "words"),
    [
        ("http://x", "hree", "there is no context 'hree'"),
        ("http://x", "lost", "Expected object with name nowhere"),
        ("http://x", "stranger", "there is no user 'v' in it"),
        ("", "here", "has no server address"),
        ("localhost", "here", "has no server address"),
    ],
)
def test_a_context_that_leads_nowhere(
    tmp_path: Path, server: str, context: str, words: str
) -> None:
    """Its name, its cluster or its address are wrong; the near one is named."""
    with pytest.raises(PairunError) as e:
        connect(Access(kubeconfig(tmp_path / "config", server), context), Vault())
    assert ids(e) == ["PR786"]
    assert words in str(e.value)
    assert TOKEN not in str(e.value)


NO_TOKEN = json.dumps(
    {"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": {}}
)


@pytest.mark.parametrize(
    ("helper", "words"),
    [
        ("echo the login has expired >&2; exit 1", "the login has expired"),
        ("exec no-such-helper", "process returned 127"),
        ("echo garbage", "login of 'helper' failed"),
        (f"echo '{NO_TOKEN}'", "missing token"),
    ],
)
def test_a_login_that_fails(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], helper: str, words: str
) -> None:
    """The command that gets a token has the word, and nobody goes on without one."""
    with pytest.raises(PairunError) as e:
        connect(Access(kubeconfig(tmp_path / "config", "http://x", helper), "helped"), Vault())
    assert ids(e) == ["PR786"]
    assert words in str(e.value)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("context", [None, "helped"])
def test_the_login_is_masked(tmp_path: Path, context: str | None) -> None:
    """A token in the file, and one that a command gets: a server may quote it."""
    credential = {**json.loads(NO_TOKEN), "status": {"token": TOKEN}}
    path = kubeconfig(tmp_path / "config", "http://x", f"echo '{json.dumps(credential)}'")
    vault = Vault()
    connect(Access(path, context), vault)
    assert vault.texts == (TOKEN,)


def test_the_namespace_is_the_contexts_unless_it_is_given(tmp_path: Path) -> None:
    """And default where nobody names one."""
    path = kubeconfig(tmp_path / "config", "http://x")
    assert connect(Access(path), Vault()).namespace == "space"
    assert connect(Access(path, None, "mine"), Vault()).namespace == "mine"
    assert connect(Access(path, "nobody"), Vault()).namespace == "default"


def test_a_client_that_is_incomplete_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the client cannot be imported, a message says so; no traceback appears."""
    monkeypatch.setitem(sys.modules, "kubernetes.client", None)
    with pytest.raises(PairunError) as e:
        connect(Access(), Vault())
    assert ids(e) == ["PR785"]
    assert "kubernetes.client is missing" in e.value.problems[0].message

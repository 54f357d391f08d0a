"""Servers that play recordings, and a client of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pairun.engines.kubernetes.cluster import Cluster
from pairun.engines.kubernetes.kubeconfig import Access, connect
from pairun.secrets.vault import Vault
from tests.engines.kubernetes.samples import kubeconfig
from tests.fakeapi import Fake, Handler

Served = tuple[Cluster, Fake]
Serve = Callable[[Handler, str], Served]


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Start an API server of a handler, and connect to a namespace; its kubeconfig is in `config`."""
    # The recording's clock moves by requests: whoever waits between two of them waits for nothing.
    monkeypatch.setattr("time.sleep", lambda _: None)
    started: list[Fake] = []

    def start(handler: Handler, namespace: str) -> Served:
        fake = Fake(handler)
        started.append(fake)
        access = Access(kubeconfig(tmp_path / "config", fake.url), None, namespace)
        return connect(access, Vault()), fake

    yield start
    for fake in started:
        fake.close()

"""An API server of one function, for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pairun.engines.kubernetes.cluster import Cluster
from pairun.engines.kubernetes.kubeconfig import Access, connect
from pairun.secrets.vault import Vault
from tests.engines.kubernetes.samples import kubeconfig
from tests.fakeapi import Fake, Handler


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[[Handler], tuple[Cluster, Fake]]]:
    """Start an API server of a function, and connect to it."""
    started: list[Fake] = []

    def start(handler: Handler) -> tuple[Cluster, Fake]:
        fake = Fake(handler)
        started.append(fake)
        return connect(Access(kubeconfig(tmp_path / "config", fake.url)), Vault()), fake

    yield start
    for fake in started:
        fake.close()

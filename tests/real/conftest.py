"""Real servers: the laboratory beside the checkout starts them, once per test run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping

import pytest

Lab = Callable[..., str]


def _served(lab: Lab, up: tuple[str, ...], down: tuple[str, ...]) -> Iterator[Mapping[str, str]]:
    """What servers offer, as variables; they go down with the test run."""
    exported = lab(*up)
    lines = re.findall(r"^export ([A-Z0-9_]+)=(.*)$", exported, re.MULTILINE)
    yield {name: "".join(shlex.split(value)) for name, value in lines}
    lab(*down)


@pytest.fixture(scope="session")
def git_server(lab: Lab) -> Iterator[Mapping[str, str]]:
    """Git over HTTP: LAB_GIT_URL, LAB_GIT_AUTH_URL, LAB_GIT_LIMITED_URL, LAB_GIT_REPOS and so on."""
    yield from _served(lab, ("git", "up"), ("git", "down"))


@pytest.fixture(scope="session")
def registries(lab: Lab) -> Iterator[Mapping[str, str]]:
    """Registries: LAB_REGISTRY, LAB_REGISTRY_BASIC, _TLS, _TLS_CA, _TOKEN, _LIMITED, LAB_USER and so on."""
    yield from _served(lab, ("registry", "up", "all"), ("registry", "down"))


@pytest.fixture(scope="session")
def api_server(lab: Lab) -> Iterator[Mapping[str, str]]:
    """A Kubernetes API server: LAB_API_URL, LAB_API_CA, LAB_ADMIN_TOKEN, LAB_LIMITED_TOKEN and so on.

    One that somebody else has started, as for a whole node, stays up.
    """
    down = ("help",) if "apiserver" in lab("status") else ("api", "down")
    yield from _served(lab, ("api", "up"), down)

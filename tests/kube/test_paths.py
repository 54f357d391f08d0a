"""Paths at an API server, written and read."""

from __future__ import annotations

import pytest

from pairun.kube.paths import object_path, resource_of

BATCH, CORE = "/apis/batch/v1", "/api/v1"


@pytest.mark.parametrize(
    ("parts", "path", "resource"),
    [
        (("v1", "pods", "a"), f"{CORE}/namespaces/a/pods", ("", "pods", "a", False)),
        (
            ("v1", "pods", "a", "b", "log"),
            f"{CORE}/namespaces/a/pods/b/log",
            ("", "pods/log", "a", True),
        ),
        (
            ("batch/v1", "jobs", "a", "b/c"),
            f"{BATCH}/namespaces/a/jobs/b%2Fc",
            ("batch", "jobs", "a", True),
        ),
        (None, f"{BATCH}/jobs", ("batch", "jobs", "", False)),
        (None, f"{CORE}/services", ("", "services", "", False)),
        (None, f"{CORE}/namespaces/a", ("", "namespaces", "", True)),
        (None, BATCH, ("batch", "v1", "", False)),
        (None, "/version", ("", "version", "", False)),
    ],
)
def test_a_path_and_what_it_names(
    parts: tuple[str, ...] | None, path: str, resource: tuple[str, ...]
) -> None:
    assert tuple(resource_of(path)) == resource
    assert parts is None or object_path(*parts) == path

"""An API server that quotes what it was sent, secrets and token included, is not quoted."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Shell, shell
from tests.cli.test_secret_forms import job, leaks
from tests.engines.kubernetes.conftest import serve
from tests.engines.kubernetes.samples import TOKEN, Serve
from tests.fakeapi import Answer, status

__all__ = ["serve", "shell"]


class Echo:
    """Refuses everything, and quotes it."""

    def __init__(self, code: int) -> None:
        self._code = code

    def __call__(self, method: str, path: str, query: dict[str, str], body: Any) -> Answer:
        """Answer."""
        if path == "/version":
            return 200, {"major": "1", "minor": "30", "gitVersion": "v1.30.0"}
        sent = json.dumps(body)
        encoded = base64.b64encode(sent.encode()).decode()
        text = f"{method} {path} with Bearer {TOKEN}: {sent} {encoded}"
        return status(self._code, "Invalid", text)


@pytest.mark.slow
@pytest.mark.parametrize("code", [401, 403, 409, 422, 500])
@pytest.mark.parametrize(
    "words",
    [
        ["submit", "job.yaml", "--engine", "pod", "--image", "pairun:1"],
        ["submit", "job.yaml", "--engine", "jobset", "--image", "pairun:1"],
        ["status", "forms"],
        ["logs", "forms"],
        ["delete", "forms"],
        ["doctor"],
    ],
    ids=lambda words: " ".join(words[:1] + words[2:4]),
)
def test_an_api_server_that_quotes(
    code: int, words: list[str], serve: Serve, shell: Shell, tmp_path: Path
) -> None:
    """No command prints the job's secret or the token of the kubeconfig, whatever the server says."""
    serve(Echo(code))
    # Not with values that JSON escapes: base64 of escaped text is no form of a secret.
    Path("job.yaml").write_text(job("    {}\n", more=()))
    said = shell(*words, "--kubeconfig", str(tmp_path / "config"))
    assert said.code != 0 or words == ["doctor"]
    assert leaks(said.out + said.err) == []
    assert TOKEN not in said.out + said.err

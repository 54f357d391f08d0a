"""How long trouble is retried."""

from __future__ import annotations

import time

import pytest

from pairun.engines.kubernetes import apierrors
from pairun.engines.kubernetes.apierrors import Unreachable


def test_trouble_is_borne_for_a_while_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer in between starts the time anew; a refusal that stays counts at once."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    patience, trouble = apierrors.Patience(), Unreachable()
    for now[0] in (0.0, apierrors.TROUBLE_S):
        patience.bear(trouble)
    patience.answered()
    now[0] += 1
    patience.bear(trouble)
    now[0] += apierrors.TROUBLE_S + 1
    with pytest.raises(Unreachable):
        patience.bear(trouble)


def test_an_http_address_of_a_server_that_speaks_https() -> None:
    """What Go's servers answer without TLS names no object; the address is what is wrong."""
    request = apierrors.Request(
        "http://10.0.0.1:6443", "default", "GET", "/api/v1/namespaces/x/pods"
    )
    problem = apierrors.refusal(request, 400, {}).problems[0]
    assert "http://10.0.0.1:6443 does not answer http" in problem.message
    assert "https://" in str(problem.hint)
    told = apierrors.refusal(request, 400, {"message": "no such field"}).problems[0]
    assert "no such field" in told.message

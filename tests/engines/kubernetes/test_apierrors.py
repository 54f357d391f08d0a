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
    patience, trouble = apierrors.Patience(), apierrors.unreachable("https://a:6443", "refused")
    for now[0] in (0.0, apierrors.TROUBLE_S):
        patience.bear(trouble)
    patience.answered()
    now[0] += 1
    patience.bear(trouble)
    now[0] += apierrors.TROUBLE_S + 1
    with pytest.raises(Unreachable):
        patience.bear(trouble)


def test_an_outage_is_told_from_its_fifth_second_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then every 30 seconds, and once when it is over; a short one is not worth a line."""
    now, said = [0.0], []
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    patience = apierrors.Patience(lambda line: said.append((now[0], line)))
    trouble = apierrors.unreachable("https://a:6443", "refused")
    for now[0] in range(5):
        patience.bear(trouble)
    patience.answered()
    assert not said
    for now[0] in range(100, 165):
        patience.bear(trouble)
    patience.answered()
    assert [at for at, _ in said] == [105, 135, 164]
    assert said[0][1].startswith("the API server https://a:6443 cannot be reached")
    assert said[1][1].endswith("; pairun retries for 4m25s")
    assert said[2][1] == "the API server responds again, after 1m4s"


def test_a_certificate_that_is_not_yet_valid_may_mean_a_wrong_clock() -> None:
    why = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate is not yet valid (_ssl.c:1006)"
    [problem] = apierrors.unreachable("https://a:6443", why).problems
    assert "certificate is not yet valid" in problem.message
    assert "clock" in str(problem.hint)


def test_an_http_address_of_a_server_that_speaks_https() -> None:
    """What Go's servers answer without TLS names no object; the address is what is wrong."""
    asked = ("http://10.0.0.1:6443", "get", "/api/v1/namespaces/x/pods")
    problem = apierrors.refusal(*asked, 400, {}).problems[0]
    assert "http://10.0.0.1:6443 does not answer http" in problem.message
    assert "https://" in str(problem.hint)
    told = apierrors.refusal(*asked, 400, {"message": "no such field"}).problems[0]
    assert "no such field" in told.message

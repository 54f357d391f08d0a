"""Which hosts are link-local addresses."""

from __future__ import annotations

import pytest

from pairun.base.linklocal import is_link_local


@pytest.mark.parametrize(
    "host",
    ["169.254.169.254", "0xa9fea9fe", "2852039166", "169.254.43518", "[::ffff:169.254.169.254]",
     "[fe80::1]", "fe80::1%eth0", "fd00:ec2::254", "2002:a9fe:a9fe::1"],
)  # fmt: skip
def test_every_spelling_of_a_link_local_address(host: str) -> None:
    """The forms that resolvers accept count, too."""
    assert is_link_local(host)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "example.com", "::1", "169.253.0.1", "", "a" * 300, "\udc80", "1.2.3.4.5"]
)
def test_other_hosts(host: str) -> None:
    """Names and other addresses are none."""
    assert not is_link_local(host)

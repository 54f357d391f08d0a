"""Key pairs."""

from __future__ import annotations

import subprocess

from hypothesis import given
from hypothesis import strategies as st

from tests.modules.ssh_setup.conftest import own_file


@given(st.binary(min_size=32, max_size=32))
def test_public_keys_are_those_of_the_standard(seed: bytes) -> None:
    """As OpenSSL makes them of the same seed."""
    der = bytes.fromhex("302e020100300506032b657004220420") + seed
    done = subprocess.run(["openssl", "pkey", "-inform", "DER", "-pubout", "-outform", "DER"],
                          input=der, capture_output=True, check=True)  # fmt: skip
    assert done.stdout[-32:] == own_file("keys").ed25519_public(seed)

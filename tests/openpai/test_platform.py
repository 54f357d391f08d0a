"""The variables that OpenPAI sets in both containers."""

from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from pairun.openpai.platform import _uid


@given(st.lists(st.text("aé0-."), min_size=1, max_size=3))
def test_an_identifier_is_the_uuid_of_its_name(parts: list[str]) -> None:
    """The same as the standard library's, which takes longer to import."""
    assert _uid(*parts) == str(uuid.uuid5(uuid.NAMESPACE_OID, "/".join(parts)))

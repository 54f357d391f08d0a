"""How requests is imported: without what it does not need here."""

from __future__ import annotations

import subprocess
import sys

_CODE = """
import sys
import pairun.net.exchange
from requests import Response
assert not {"chardet", "charset_normalizer"} & set(sys.modules)
response = Response()
response._content = "ä".encode()
assert response.text == "ä"
import charset_normalizer
"""


def test_requests_guesses_no_encoding() -> None:
    """Its package for guesses is not loaded, nobody is warned of that, and a module may import it."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _CODE],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")

"""How requests is imported: without what it does not need here."""

from __future__ import annotations

import subprocess
import sys

_CODE = """
import sys
import pairun.net.exchange
from requests import Response
assert not {"chardet", "charset_normalizer", "importlib.metadata"} & set(sys.modules)
response = Response()
response._content = "ä".encode()
assert response.text == "ä"
import charset_normalizer
from importlib.metadata import distribution
from urllib3.http2 import version
assert version("urllib3") == distribution("urllib3").version
"""


def test_requests_guesses_no_encoding() -> None:
    """The packages for guesses and versions are not loaded; a module may import both."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _CODE],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")

"""The same surroundings for every test, whatever the machine and the person who runs them set."""

from __future__ import annotations

import os
import re
import signal
import sys
import time

FOREIGN = re.compile(
    r"""
    PYTHON.* | PYTEST_ADDOPTS | GIT_.* | SSH_.* | LC_.* | LANG | LANGUAGE | TZ | XDG_.*
    | PAI_.* | FC_.* | KUBE.* | (INIT|RUNTIME)_CONFIG | JOB_.*
    | PAIRUN_(?!SHARED$|TEST_EFFORT$|BUNDLE_CACHE$).*
    | (ALL|HTTP|HTTPS|FTP|NO)_PROXY | SSL_CERT_(FILE|DIR) | (REQUESTS|CURL)_CA_BUNDLE
    | TERM | COLUMNS | LINES | NO_COLOR | FORCE_COLOR | CLICOLOR.* | PAGER | BROWSER
    | BASH_ENV | ENV | CDPATH | SHELLOPTS | LD_PRELOAD | GREP_OPTIONS | TAR_OPTIONS
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""Variables that change what pairun, or a program that a test starts, does."""

GIVEN = dict(os.environ)
"""The environment that the tests were started with: for what builds, and goes through proxies."""


def make_plain() -> None:
    """Give this process, and all that it starts, plain surroundings."""
    for name in [n for n in os.environ if FOREIGN.fullmatch(n)]:
        del os.environ[name]
    os.environ |= {
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    # programs that tests start a hundred times are compiled once
    sys.dont_write_bytecode = False
    time.tzset()
    os.umask(0o022)
    _open_standard_input()
    _heed_signals()


def _open_standard_input() -> None:
    """Without one, the first file that a test opens would become the input of its programs."""
    try:
        os.fstat(0)
    except OSError:
        os.open(os.devnull, os.O_RDONLY)


def _heed_signals() -> None:
    """What a shell starts in the background ignores some signals, and so would all children."""
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())

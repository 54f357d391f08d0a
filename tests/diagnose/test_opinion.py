"""A guess from similar messages: where it is asked, and where it abstains."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks.diagnosis.training import Example, trained
from pairun.diagnose import opinion
from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.classes import CLASSES, NONE, UNKNOWN
from pairun.diagnose.classifier import Classifier
from pairun.diagnose.diagnosis import Diagnosis
from pairun.diagnose.lines import Log
from pairun.diagnose.opinion import BY_SIMILARITY, MOST_SURE
from pairun.diagnose.table import Table
from pairun.diagnose.weighing import UNSURE, diagnose
from pairun.diagnose.wording import features_of

LEASE = "the flux broker denied us a lease of the volume"
GONE = "a stirrer of the mixer gave up, look into its own notes for why"
_KNOWN = (
    (LEASE, "storage_io_error"),
    ("the flux broker is out of plasma credits", "service_quota"),
    ("the flux broker lost a rank of the team", "peer_lost"),
    ("our mixer wants another flavour of plasma", "config_error"),
    ("the mixer is ready and the plasma is warm", NONE),
    (GONE, "child_failed"),
)


@pytest.fixture(autouse=True)
def _knows_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the opinion know a few messages of programs that nobody has."""
    examples = [
        Example(features_of(f"{text} {more}"), klass)
        for text, klass in _KNOWN
        for more in ("", "today", "again")
    ]
    examples += [Example(features_of(kind.meaning), klass) for klass, kind in CLASSES.items()]
    monkeypatch.setattr(opinion, "read_classifier", lambda: Classifier(trained(examples)))


def _said(text: str, table: Table, code: int | None = None, *, guesses: bool = True) -> Diagnosis:
    logs = [Log(text.encode(), "log")]
    return diagnose(logs, table, Circumstances(exit_code=code), guesses=guesses)


def test_a_similar_message_names_the_class(table: Table) -> None:
    """The answer says that it is a guess, shows the line, and is unsure."""
    text = f"mixing\n{LEASE} 17, really\n"
    assert _said(text, table, 1, guesses=False).klass == UNKNOWN
    said = _said(text, table, 1)
    assert said.klass == "storage_io_error"
    assert said.headline == "a guess from similar messages: the storage failed"
    assert said.evidence[0].line == 2
    assert 0.5 < said.confidence <= MOST_SURE < UNSURE
    assert said.rule == BY_SIMILARITY
    assert said.retry == "retry_elsewhere"


def test_a_similar_message_may_say_only_that_a_child_failed(table: Table) -> None:
    """Then another log has the cause, and no cause is named."""
    assert _said(f"mixing\n{GONE}\n", table, 1).klass == "child_failed"


def test_a_guess_never_forbids_a_retry(table: Table) -> None:
    """Also if the class alone does."""
    said = _said("flux broker: error: our mixer wants another flavour\n", table, 1)
    assert (said.klass, said.retry) == ("config_error", None)


@pytest.mark.parametrize(
    "text",
    [
        "error: the zeppelin is purple\n",  # no similar message
        f"{LEASE}\n" + "mixing\n" * 12,  # not among the last lines
        f"INFO: {LEASE}\n",
        f"{LEASE}, retrying\nmixing\n",
        "the mixer is ready and the plasma is warm\nthe mixer is not ready today\nthe plasma is warm again\n",
        "warm\n" * 8 + f"{LEASE}\n" + "warm\n" * 4,  # one complaint among many lines
    ],
)
def test_it_abstains(text: str, table: Table) -> None:
    """Without a similar message at the end, or if the program handled it, the rules' answer stands."""
    assert _said(text, table) == _said(text, table, guesses=False)


def test_it_is_not_asked_of_a_success_a_report_or_a_rule(table: Table) -> None:
    """An exit code that means something, and a rule that names a cause, are better than a guess."""
    assert _said(f"{LEASE}\n", table, 0).klass == NONE
    assert _said(f"{LEASE}\n", table, 137).klass == "host_oom"
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    assert _said(f"{oom}{LEASE}\n", table).klass == "gpu_oom"


def test_an_exception_of_unknown_kind(table: Table) -> None:
    """Its message names the class if it is similar enough; an exception without a message does not."""
    trace = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    go()\n'
    assert _said(f"{trace}mixer.MixerError: {LEASE}\n", table).klass == "storage_io_error"
    assert _said(f"{trace}mixer.MixerError: purple\n", table).klass == "user_code_error"


def test_a_sure_diagnosis_does_not_load_the_classifier() -> None:
    """Its module and its weights cost nothing unless a guess is needed."""
    program = (
        "import sys\nfrom pairun.diagnose.brief import parse_table\n"
        "import pairun.diagnose.weighing\nassert 'pairun.diagnose.opinion' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)

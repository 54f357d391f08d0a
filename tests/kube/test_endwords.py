"""What the end of a container means, in words."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pairun.engines.kubernetes import apierrors
from pairun.kube.endwords import INIT_CODES, diagnosis, headline, meaning
from pairun.kube.podstates import read_pod
from pairun.runtime.termination import Summary, message
from tests.engines.kubernetes.samples import (
    DIAGNOSED,
    SAID,
    WHY,
    ended,
    pod,
)


def test_a_diagnosis_is_kept_whole_for_programs() -> None:
    """Every part that PID 1 writes, and nothing else, whatever a container says in its place."""
    read = read_pod(pod(phase="Failed", containerStatuses=[ended("app", 3, message=DIAGNOSED)]))
    assert read.diagnosis == WHY
    for wrong in (SAID, "a", DIAGNOSED.replace("diagnosis:", "diagnosis: 1\nx:")):
        assert diagnosis(wrong) == {}
    without = {name: value for name, value in WHY.items() if name != "confidence"}
    assert diagnosis(DIAGNOSED.replace("0.9", ".nan")) == without


@given(text=st.text(max_size=300), tagged=st.booleans())
def test_a_headline_is_one_short_line(text: str, tagged: bool) -> None:
    """Whatever a container left as its message."""
    said = message(Summary(exit_code=1, user_exit_code=1, user_log=text)) if tagged else text
    line = headline(said)
    assert len(line) <= 200
    assert line.isprintable()


def test_codes_mean_what_the_document_says() -> None:
    """The table of the init phase is that of docs/exit-codes.md."""
    document = (Path(apierrors.__file__).parents[3] / "docs/exit-codes.md").read_text()
    for code in (251, 252, 253, 254):
        words = meaning(code, INIT_CODES).partition("(")[2].rstrip(")")
        row = next(x for x in document.splitlines() if x.startswith(f"| {code} |"))
        assert words in row.replace(" (`image_check`)", "").replace(":", "")


def test_an_error_of_init_is_shown_with_its_advice() -> None:
    """The number of errors at the end says nothing."""
    text = (
        "  barrier | asking\n"
        "error[PR772]: this Pod may not get frameworks in the namespace n\n"
        "  help: grant it: kubectl create role pairun-get-frameworks --verb=get\n"
        "  1 error\n"
    )
    assert headline(text) == (
        "error[PR772]: this Pod may not get frameworks in the namespace n; "
        "grant it: kubectl create role pairun-get-frameworks --verb=get"
    )


def test_a_command_that_printed_nothing_has_ended_with_its_code() -> None:
    log = (
        "[Mon Nov 23 14:38:11 UTC 2026] [openpai-runtime] the command ended with 3 after 0.2 s\n"
        "[Mon Nov 23 14:38:11 UTC 2026] [openpai-runtime] [INFO] USER COMMAND END\n"
    )
    said = message(Summary(exit_code=3, user_exit_code=3, platform_log=log))
    assert headline(said).endswith("the command ended with 3 after 0.2 s")

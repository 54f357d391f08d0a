"""Tracebacks: which of their lines are source code."""

from __future__ import annotations

from pairun.diagnose.lines import Log
from pairun.diagnose.table import Table
from pairun.diagnose.weighing import diagnose

BOXED = """\
12:04:16 ERROR    training failed
                  ╭─────────────── Traceback (most recent call last) ────────────────╮
                  │ /job/train.py:41 in step                                         │
                  │                                                                  │
                  │    40 │   if loss != loss:                                       │
                  │ ❱  41 │   │   raise FloatingPointError("loss is nan at step 9")  │
                  ╰──────────────────────────────────────────────────────────────────╯
                  KeyError: 'label'
"""


def test_the_source_code_in_a_box_of_rich_is_no_message(table: Table) -> None:
    """The exception is below the box."""
    assert diagnose([Log(BOXED.encode())], table).klass == "user_code_error"


BUILD = """\
  error: subprocess-exited-with-error

  error: python setup.py egg_info did not run successfully.
  ╰─> [3 lines of output]
      Traceback (most recent call last):
        File "<string>", line 2, in <module>
      ModuleNotFoundError: No module named 'torch'
      [end of output]
error: metadata-generation-failed
"""


def test_the_exception_of_an_indented_traceback_is_no_source_code(table: Table) -> None:
    """The output of a build, which pip indents; its frame has no line of code."""
    diagnosis = diagnose([Log(BUILD.encode())], table)
    assert (diagnosis.klass, diagnosis.rule) == ("build_failed", "build-needs-module")
    assert diagnosis.headline.startswith("the build of a package needs the module torch,")
    assert diagnosis.evidence[0].text == "ModuleNotFoundError: No module named 'torch'"
    assert "--no-build-isolation" in diagnosis.advice

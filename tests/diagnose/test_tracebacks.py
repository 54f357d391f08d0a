"""Tracebacks: which of their lines count."""

from __future__ import annotations

import pytest

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


def test_the_exception_of_an_indented_traceback(table: Table) -> None:
    """The output of a build, which pip indents; its frame has no line of code."""
    diagnosis = diagnose([Log(BUILD.encode())], table)
    assert (diagnosis.klass, diagnosis.rule) == ("build_failed", "build-needs-module")
    assert diagnosis.headline.startswith("the build of a package needs the module torch,")
    assert diagnosis.evidence[0].text == "ModuleNotFoundError: No module named 'torch'"
    assert "--no-build-isolation" in diagnosis.advice


_FRAME = 'Traceback (most recent call last):\n  File "/job/t.py", line 4, in f\n    x\n'
_FULL = "OSError: [Errno 28] No space left on device\n"


@pytest.mark.parametrize(
    ("text", "klass", "line"),
    [
        # the clean-up of a checkpoint fails because the disk is full
        (_FRAME + _FULL + "\nDuring handling of the above exception, another exception occurred:\n\n"
            + _FRAME + "FileNotFoundError: [Errno 2] No such file or directory: 'a.tmp'\n",
         "disk_full", _FULL),
        (_FRAME + "KeyError: 'a'\n\nDuring handling of the above exception, another exception occurred:\n\n"
            + _FRAME + "KeyError: 'b'\n",
         "user_code_error", "KeyError: 'b'"),
        # PyTorch names the type of the exception that it passes on
        (_FRAME + "KeyError: Caught KeyError in DataLoader worker process 0.\nOriginal " + _FRAME
            + "KeyError: 'b'\n",
         "user_code_error", "KeyError: 'b'"),
        (_FRAME + "PIL.UnidentifiedImageError: Caught UnidentifiedImageError in DataLoader worker process 0.\n"
            "Original " + _FRAME + '  File "/usr/lib/python3/dist-packages/PIL/Image.py", line 3, in open\n',
         "input_data_error", ""),
    ],
)  # fmt: skip
def test_of_two_equal_exceptions_the_later_one_counts(
    text: str, klass: str, line: str, table: Table
) -> None:
    """An exception that was handled or passed on is evidence as long as no better one follows."""
    diagnosis = diagnose([Log(text.encode())], table)
    assert diagnosis.klass == klass
    assert line.strip() in diagnosis.evidence[0].text

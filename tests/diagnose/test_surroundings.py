"""What a log prints after an error shows whether the program outlived it."""

from __future__ import annotations

import pytest

from pairun.diagnose.lines import Log
from pairun.diagnose.table import Table
from pairun.diagnose.weighing import diagnose
from tests.diagnose.cases import STEPS

_KEY = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    d[k]\nKeyError: 9\n'
_REPORT = (
    "Sender: LSF System <lsfadmin@n1>\nSubject: Job 7: <train> in cluster <c1> Exited\n\n"
    "Exited with exit code 1.\n\nResource usage summary:\n\n    CPU time :  512.31 sec.\n"
)


@pytest.mark.parametrize(
    ("text", "klass"),
    [
        # a job script's last line says nothing about the program before it
        (STEPS + _KEY + "End time: 10:11\nJob finished\n", "user_code_error"),
        (STEPS + _KEY + "Training completed\n", "user_code_error"),
        (STEPS + "fatal: unable to access 'https://h.example/r': Could not resolve host: h.example\nAll done\n",
         "network_unreachable"),
        # the program printed it itself, after the function that failed
        (STEPS + _KEY.replace("<module>", "probe") + STEPS + "Training completed\n", "none"),
        # LSF prints its report below the output
        (STEPS + _KEY + _REPORT, "user_code_error"),
    ],
)  # fmt: skip
def test_a_last_line_of_success(text: str, klass: str, table: Table) -> None:
    """Only the program's own success outweighs an error."""
    assert diagnose([Log(text.encode())], table).klass == klass


@pytest.mark.parametrize(
    "text",
    [
        (
            '10.0.0.1 - - [22/Nov/2026 14:23:25] code 404, message File not found\n'
            '10.0.0.1 - - [22/Nov/2026 14:23:25] "GET /x HTTP/1.1" 404 -\n'
        ),
        (
            "(raylet) A worker died or was killed while executing a task by an unexpected system error.\n"
            "(raylet) Task f failed. There are 3 retries remaining, so the task will be retried.\nall tasks ended\n"
        ),
        "Failed to load libjpeg.so: cannot open shared object file; continuing without it\n",
        "port 8080 is already in use, trying 8081\n",
        "/cache/tokens.bin does not exist yet, building it\n",
        "http: TLS handshake error from 10.0.0.3:9: EOF\n",
        "nfs: server nas1 not responding, still trying\nnfs: server nas1 OK\n",
        "GPU 3: row remap failures 0, uncorrectable ECC errors: 0\n",
        "save a checkpoint on SIGTERM: yes\n",
    ],
)  # fmt: skip
def test_a_failure_that_the_program_handles(text: str, table: Table) -> None:
    """It answers the request, starts the task again, or takes another way."""
    assert diagnose([Log(text.encode())], table).is_clean


def test_a_file_server_that_is_away_again_and_again(table: Table) -> None:
    """Its last answer does not make up for the others."""
    text = "nfs: server nas1 not responding, still trying\n" * 4 + "nfs: server nas1 OK\n"
    assert diagnose([Log(text.encode())], table).klass == "storage_io_error"


_ILLEGAL = "RuntimeError: CUDA error: an illegal memory access was encountered\n"
_LONG = "".join(f"epoch 3 step {n}: loss=0.{n}\n" for n in range(60))
_TRACE = (
    "ERROR:    {what}\nTraceback (most recent call last):\n"
    '  File "/srv/app.py", line 9, in answer\n    raise ValueError(text)\nValueError: the text is too long\n'
)


@pytest.mark.parametrize(
    ("text", "klass"),
    [
        (_TRACE.format(what="cannot tokenize") + '"POST /v1/chat HTTP/1.1" 400 Bad Request\n', "user_code_error"),
        # the engine is lost, although the server answers
        (_ILLEGAL + '"GET /health HTTP/1.1" 200 OK\n', "cuda_kernel_error"),
        # a system's report about a job that trains on
        ("slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT T DUE TO TIME LIMIT ***\n" + _LONG, "none"),
        (_LONG + "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT T DUE TO TIME LIMIT ***\n"
            + "epoch 3 step 60: loss=0.6\n",
         "time_limit"),
        ("could not find arguments in the checkpoint\n" + STEPS, "none"),
    ],
)  # fmt: skip
def test_a_program_that_goes_on(text: str, klass: str, table: Table) -> None:
    """It trains after the error, and nothing else ends it."""
    assert diagnose([Log(text.encode())], table).klass == klass


_LOGGED = (
    "2026-01-02 10:00:00,000 - plugins - ERROR - cannot set up the plugin\nTraceback (most recent call last):\n"
    '  File "/opt/x/site-packages/plugins/core.py", line 31, in load\n    self.open()\n'
    "OSError: [Errno 28] No space left on device: '/tmp/probe'\n"
)
_USUAL = "".join(f"2026-01-02 10:00:0{n},000 - main - INFO - part {n} is built\n" for n in range(4))


@pytest.mark.parametrize(
    ("text", "klass"),
    [
        (_LOGGED + _KEY, "disk_full"),
        (_LOGGED + _USUAL, "disk_full"),
        (_LOGGED + _USUAL + "srun: error: n1: task 0: Exited with exit code 1\n", "disk_full"),
        (_LOGGED + _USUAL * 9, "none"),
        (_LOGGED + _USUAL * 9 + "fatal: all is lost\n", "disk_full"),
        (_LOGGED + _USUAL + STEPS, "none"),
    ],
)
def test_a_logged_exception(text: str, klass: str, table: Table) -> None:
    """It counts unless the program went on as usual, for long or until something else ended it."""
    assert diagnose([Log(text.encode())], table).klass == klass

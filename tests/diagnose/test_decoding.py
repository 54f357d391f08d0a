"""What systems wrap around the lines of a program is taken off."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pairun.diagnose.decoding import decoded
from pairun.diagnose.lines import Log
from pairun.diagnose.table import Table
from tests.diagnose.jobs import KEY_ERROR, incident_of, write

TIME = "2026-03-01T12:04:16.870000000Z"


def docker(text: str) -> str:
    """Lines as Docker's json-file driver keeps them."""
    records = ({"log": line + "\n", "stream": "stderr", "time": TIME} for line in text.splitlines())
    return "".join(json.dumps(record) + "\n" for record in records)


def cri(text: str) -> str:
    """Lines as the kubelet keeps them."""
    return "".join(f"{TIME} stderr F {line}\n" for line in text.splitlines())


def logger(text: str) -> str:
    """A structured logger's record, with the traceback in one value."""
    first, _, trace = text.partition("\n")
    start = {"timestamp": TIME, "level": "info", "message": first, "rank": 3}
    end = {"timestamp": TIME, "level": "error", "message": "failed", "rank": 3, "exc_info": trace}
    return json.dumps(start) + "\n" + json.dumps(end) + "\n"


@pytest.mark.parametrize("wrap", [docker, cri, logger])
def test_a_traceback_is_read_in_every_form(tmp_path: Path, table: Table, wrap: object) -> None:
    """Class, line of the code and time are the same."""
    assert callable(wrap)
    incident = incident_of(write(tmp_path, {"worker-3.log": wrap(KEY_ERROR)}), table)
    assert incident.diagnosis.klass == "user_code_error"
    assert incident.diagnosis.details["code_line"] == "41"
    assert incident.members[0].rank == 3
    assert incident.members[0].at is not None
    assert incident.members[0].at.clock() == "12:04:16"


def test_lines_that_docker_cut_are_joined() -> None:
    """A record without a newline goes on in the next one."""
    text = '{"log":"Key","stream":"stdout","time":"x"}\n{"log":"Error: 1\\n","stream":"stdout","time":"x"}\n'
    assert b"KeyError: 1" in decoded(Log(text.encode(), "a")).data


def fluent_bit(pod: str, text: str) -> dict[str, object]:
    """A record as Fluent Bit stores it, without a newline from CRI's form."""
    where = {"pod_name": pod, "namespace_name": "jobs", "container_name": "main"}
    return {"@timestamp": TIME, "log": text, "stream": "stderr", "kubernetes": where}


def filebeat(pod: str, text: str) -> dict[str, object]:
    """A record as Filebeat stores it."""
    where = {"pod": {"name": pod}, "container": {"name": "main"}}
    return {"@timestamp": TIME, "message": text, "kubernetes": where}


def google_cloud(pod: str, text: str) -> dict[str, object]:
    """A record as Google Cloud's logging exports it."""
    labels = {"pod_name": pod, "container_name": "main"}
    return {"textPayload": text, "timestamp": TIME, "resource": {"labels": labels}}


def loki(pod: str, text: str) -> dict[str, object]:
    """A record as Loki's client prints it."""
    return {"labels": {"pod": pod, "container": "main"}, "line": text, "timestamp": TIME}


@pytest.mark.parametrize("ship", [fluent_bit, filebeat, google_cloud, loki])
def test_a_shippers_export_is_split_by_pod(
    tmp_path: Path, table: Table, ship: Callable[[str, str], dict[str, object]]
) -> None:
    """The lines of two Pods alternate in one file; the Pod with the traceback failed first."""
    records = []
    for line in KEY_ERROR.splitlines():
        records += [ship("train-1", line), ship("train-0", "INFO step 1 loss 0.5")]
    text = "".join(json.dumps(record) + "\n" for record in records)
    incident = incident_of(write(tmp_path, {"export.jsonl": text}), table)
    assert incident.first is not None
    assert incident.first.label == "train-1"
    assert incident.diagnosis.details["code_line"] == "41"


def _cloud(n: int, line: str) -> dict[str, object]:
    """An entry of Google Cloud's logging."""
    labels = {"labels": {"pod_name": f"w-{n}"}}
    return {"textPayload": line, "timestamp": TIME, "severity": "INFO", "resource": labels}


def _journal(n: int, line: str) -> dict[str, object]:
    """An entry of ``journalctl -o json``."""
    return {"__REALTIME_TIMESTAMP": "1772366656870000", "_HOSTNAME": f"hpc-{n}", "MESSAGE": line}


def _stream(n: int, line: str) -> dict[str, object]:
    """An event of CloudWatch; the name of the stream is a path."""
    return {"logStreamName": f"train/worker-{n}/8c1f", "timestamp": 1772366656870, "message": line}


def _nested(n: int, line: str) -> dict[str, object]:
    """A record whose text and host are in an object, as Datadog exports it."""
    return {"id": "AQ", "content": {"message": line, "host": f"gpu-{n}"}}


def _two_numbers(n: int, line: str) -> dict[str, object]:
    """A record with the number of the node and that of the process on it."""
    return {"ts": TIME, "msg": line, "extra": {"node": n // 4, "local_rank": str(n % 4)}}


@pytest.mark.parametrize("entry", [_cloud, _journal, _stream, _nested, _two_numbers])
def test_entries_of_several_writers_are_split(
    tmp_path: Path, table: Table, entry: Callable[[int, str], dict[str, object]]
) -> None:
    lines = KEY_ERROR.splitlines()
    entries = [entry(n, line) for line in lines[:1] for n in range(3)]
    entries += [entry(1, line) for line in lines[1:]]
    text = "\n".join(map(json.dumps, entries))
    incident = incident_of(write(tmp_path, {"entries.json": text}), table)
    assert incident.first is not None
    assert incident.first.rank == 1
    assert incident.diagnosis.details["exception"] == "KeyError"


LOST = (
    "2026-03-01 12:04:16,871 INFO step 120 loss 0.70\n"
    "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.3]:41\n"
)


@pytest.mark.parametrize(
    "header",
    ["==> logs/worker-{}.log <==\n", "----------------\ngpu-{}\n----------------\n"],
    ids=["tail", "dshbak"],
)
def test_the_first_rank_is_that_of_its_section(tmp_path: Path, table: Table, header: str) -> None:
    """The evidence has the line number of the file."""
    texts = [header.format(n) + (KEY_ERROR if n == 1 else LOST) for n in range(3)]
    incident = incident_of(write(tmp_path, {"all.txt": "".join(texts)}), table)
    assert incident.first is not None
    assert incident.first.rank == 1
    expected = "".join(texts)[: "".join(texts).index("KeyError")].count("\n") + 1
    assert incident.diagnosis.evidence[0].line == expected


def test_a_ruled_line_alone_is_no_header() -> None:
    """Programs underline their headings."""
    log = Log(b"----------\nsummary\n----------\nloss 0.7\n", "log")
    assert decoded(log) is log


TRACE = "".join(f"{line}\n" for line in KEY_ERROR.splitlines()[1:])
FORMS = {
    "headers of tail": f"==> w-0.log <==\nstep 1\nstep 2\n\n==> w-1.log <==\nstep 1\n{TRACE}",
    "JSON": "".join(
        json.dumps(
            {"ts": "2026-03-01T12:04:16Z", "level": "error", "pod": f"w-{k % 2}", "msg": text}
        )
        + "\n"
        for k, text in enumerate(["step 1", "step 1", "step 2", TRACE, "step 3", "step 3"])
    ),
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_evidence_is_a_part_of_the_line_that_it_names(
    tmp_path: Path, table: Table, text: str
) -> None:
    """What rewriting adds, such as the name of a Pod, is not shown."""
    incident = incident_of(write(tmp_path, {"all.log": text}), table)
    shown = incident.diagnosis.evidence[0]
    assert incident.diagnosis.klass == "user_code_error"
    assert shown.text in text.splitlines()[shown.line - 1]
    assert shown.text == "KeyError: 'label'"

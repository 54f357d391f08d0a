"""Who set what, as records of the journal."""

from __future__ import annotations

import json
import pathlib
from typing import Any

from pairun.init.phase import MAX_VALUE, settings_records
from pairun.report.page.lanes import settings_row
from tests.desk import Desk


def records_of(desk: Desk, text: str, *roots: pathlib.Path) -> dict[str, Any]:
    """The records of a job, by task."""
    review = desk.valid(text, *roots)
    return {r["task"]: r for r in settings_records(review.plans[0], review.vault)}


def test_each_task_of_both_phases_has_a_record(tmp_path: pathlib.Path) -> None:
    """It names who brought the task, and what others set; a disabled task has none."""
    desk = Desk(tmp_path)
    records = records_of(
        desk, desk.job("init:\n  - {disable: port_check}\n  - {patch: image_check, retries: 7}")
    )
    assert "port_check" not in records
    assert records["user_command"]["phase"] == "runtime"
    assert records["barrier"]["set"] == []
    (retries,) = records["image_check"]["set"]
    assert (records["image_check"]["layer"], retries["path"], retries["value"]) == ("built-in", "retries", 7)  # fmt: skip
    assert (retries["layer"], retries["where"], retries["was"]["value"]) == ("job", "job.yaml:16:39", 2)  # fmt: skip


def test_secrets_are_masked_and_long_values_cut(tmp_path: pathlib.Path) -> None:
    """A value under a key that means a secret is masked whole, also one that was replaced."""
    desk = Desk(tmp_path)
    root = desk.root(
        {
            "playbooks/policy.yaml": desk.all_open,
            "playbooks/runtime.yaml": "phase: runtime\ntasks:\n"
            "  - {id: call, name: Call, cmd: {script: x}, environment: {API_TOKEN: first-one}}\n"
            + desk.command,
        }
    )
    text = desk.job(
        "runtime:\n  - patch: call\n    environment: {API_TOKEN: second-one}\n"
        f"    args: {{script: {'y' * 9000}}}"
    )
    record = json.dumps(records_of(desk, text, root)["call"], ensure_ascii=False)
    assert "first-one" not in record
    assert "second-one" not in record
    assert "API_TOKEN" in record
    assert len(record) < 3 * MAX_VALUE


def test_a_value_from_a_parameter_names_the_job_s_line(tmp_path: pathlib.Path) -> None:
    """The plugin's spec only passes it on."""
    desk = Desk(tmp_path)
    spec = (
        "summary: S\nparameters: {properties: {word: {type: string}, more: {default: b}}}\n"
        "runtime: [{name: N, cmd: {argv: [echo, '{{ parameters.word }}', '{{ parameters.more }}']}}]\n"
    )
    root = desk.root({"playbooks/policy.yaml": desk.all_open, "plugin_specs/greet.yaml": spec})
    text = desk.job_text + (
        "extras:\n  com.microsoft.pai.runtimeplugin:\n"
        "    - {plugin: greet, parameters: {word: hi}}\n"
    )
    (word,) = records_of(desk, text, root)["greet"]["set"]
    assert (word["path"], word["value"], word["layer"]) == ("args.argv", "hi", "job")
    assert word["source"] == "parameter word"
    assert word["where"].startswith("job.yaml:")
    settings = {"layer": "cluster", "where": "greet.yaml:3:11", "set": [word]}
    row = json.loads(settings_row(settings))
    assert row["set"][0]["by"] == f"job {word['where']}, parameter word"

"""Runs a plan as a phase does, in a process of its own: journal, console, signals, exit code.

Arguments: the folder that holds ``plan.json``; the journal is written there.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from pairun.base.fields import decode
from pairun.contract.loading import plan_loader
from pairun.executor.phase import Executor
from pairun.executor.shared import Shared
from pairun.report.console import Console
from pairun.secrets.vault import Vault
from pairun.volume.door import Door
from pairun.volume.journal import Journal
from pairun.volume.planfile import load_plan
from pairun.volume.reader import Secrets, body

folder = sys.argv[1]
with open(os.path.join(folder, "plan.json"), encoding="utf-8") as file:
    document = json.load(file)
secrets = decode(Secrets, body(document.pop("secrets"), "secrets.json"))
plan = load_plan(body(document, "plan.json"), secrets, "plan.json")
vault = Vault(secrets.redact)
console = Console(sys.stdout, vault)
path = os.path.join(folder, "journal.jsonl")
journal = Journal(Door(folder), path, vault.record, console.say)


def emit(event: dict[str, Any]) -> None:
    """Events go to both."""
    journal(event)
    console(event)


def resolve(late: Any, results: Any, env: Any) -> Any:
    """Late values of this driver are paths into the results."""
    raise NotImplementedError


shared = Shared(
    load=plan_loader(plan.modules),
    resolve=resolve,
    emit=emit,
    vault=vault,
    env=dict(os.environ),
    pai_dir=folder,
)
executor = Executor(plan, shared)
executor.begin()
with executor.loop:
    outcome = executor.run_handlers(executor.run_tasks())
    executor.end(outcome)
sys.exit(outcome.exit_code)

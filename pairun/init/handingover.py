"""Writes the data for the user's container to the volume."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable

from pairun.base.paths import DIAGNOSIS_FILE, EXIT_SPEC_FILE, GANG_FILE, runtime_file
from pairun.errors import PairunError, Place, Problem, Problems, Source
from pairun.executor.phase import PhaseOutcome
from pairun.init.podplans import PodPlans
from pairun.module import Failure
from pairun.openpai.podconfig import EXIT_SPEC
from pairun.playbook.document.reading import decode
from pairun.playbook.readyrules import ready_rules
from pairun.report.problems import print_problems, print_unforeseen
from pairun.volume.writer import Volume

JOB_FILE = "job_config.yaml"
"""The Framework's job file, in ``runtime.d``; OpenPAI's name."""


def prepare(plans: PodPlans) -> Volume:
    """Prepare the volume, and write what is known before any task runs."""
    volume = Volume(plans.pai_dir, plans.env)
    volume.prepare()
    if (spec := plans.pod.exit_spec) is not None:
        # Unchanged from the cluster; PID 1 reads it.
        volume.add(EXIT_SPEC, spec.text)
        volume.add(EXIT_SPEC_FILE, json.dumps(spec.data).encode())
    if plans.pod.job_text is not None:
        # Every process in the Pod may read the file.
        text = plans.vault.text(plans.pod.job_text)
        volume.add(JOB_FILE, text.encode("utf-8", "surrogateescape"))
    if plans.pod.framework is not None:
        volume.add(GANG_FILE, json.dumps(plans.pod.framework).encode())
        plans.env["PAIRUN_FRAMEWORK_FILE"] = runtime_file(plans.pai_dir, GANG_FILE)
    volume.add_program()
    return volume


def hand_over(plans: PodPlans, volume: Volume, learned: Iterable[str] = ()) -> PhaseOutcome | None:
    """Plan the runtime phase with the peers' addresses, and write the plan.

    Returns:
        The failure, or None. Not raised, because the exit handlers must run.
    """
    try:
        _add_rules(plans, volume)
        cluster = plans.cluster()
        if plans.meeting is not None:
            plans.meeting.note(cluster)
        variables = {n: plans.as_secret(v) for n, v in _variables(volume).items()}
        plans.take_scripts(volume.plugin_scripts())
        plan = plans.make().plans["runtime"]
        # Of the cluster's secrets, hand over only those that the job's plan needs.
        ours = [*plans.layers.content.concealed(), *learned]
        volume.hand_over(plan, plans.secrets, variables, redact_used=ours)
    except PairunError as e:
        print_problems(e.problems, plans.vault)
        return _failure("the handover failed")
    except Failure as e:
        print_problems([Problem("PR701", e.message, hint=e.hint)], plans.vault)
        return _failure(f"the handover: {e.message}")
    except OSError as e:
        path = volume.pai_dir if e.filename is None else os.fsdecode(e.filename)
        problem = Problem("PR701", f"{path} cannot be used: {e.strerror or e}")
        print_problems([problem], plans.vault)
        return _failure(f"the handover: {e}")
    except Exception as e:  # noqa: BLE001 - the exit handlers must run after any error
        print_unforeseen(e, plans.vault)
        return _failure(f"the handover: {type(e).__name__}: {e}")
    return None


def _failure(message: str) -> PhaseOutcome:
    return PhaseOutcome(event="failure", exit_code=1, message=message)


def _add_rules(plans: PodPlans, volume: Volume) -> None:
    """Write the rules of the failure diagnosis."""
    problems = Problems()
    volume.add(DIAGNOSIS_FILE, ready_rules(plans.layers.content, plans.env, problems))
    print_problems(problems, plans.vault)


def _variables(volume: Volume) -> dict[str, str]:
    """The variables from init tasks for the user's container.

    Raises:
        PairunError: the file is not valid.
    """
    path, text = volume.variables_file()
    problems = Problems()
    variables = read_variables(decode(text, path, "cluster"), problems)
    problems.raise_errors()
    return variables


_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")


def read_variables(source: Source, problems: Problems) -> dict[str, str]:
    """Read lines of ``NAME=value``; the last one of a name wins.

    Values are literal: quotes, ``$`` and backslashes have no meaning. Ignores empty lines and lines
    that begin with ``#``; ``export`` may precede a name.

    Args:
        source: the file; problems never quote its lines, because values may be credentials.
    """
    variables: dict[str, str] = {}
    lines = source.text.split("\n")
    source.hide(1, len(lines))
    for number, raw in enumerate(lines, 1):
        line = raw.removesuffix("\r")
        text = line.lstrip(" \t")
        if not text or text.startswith("#"):
            continue
        text = re.sub(r"^export[ \t]+", "", text)
        name, equals, value = text.partition("=")
        place = Place(source, number, len(line) - len(text) + 1)
        if not equals:
            problems.error("PR717", "this line is not NAME=value", place)
        elif not _NAME.fullmatch(name):
            message = "the text before '=' is not the name of a variable"
            hint = "letters, digits and '_', no digit first, no space before '='"
            problems.error("PR717", message, place, hint)
        elif "\0" in value:
            problems.error("PR717", f"the value of {name} holds a NUL character", place)
        else:
            variables[name] = value
    return variables

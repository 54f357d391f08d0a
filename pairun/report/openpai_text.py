"""A job under OpenPAI's own runtime and under pairun, as text for people."""

from __future__ import annotations

from itertools import groupby
from typing import IO, Any

from pairun.base.escapes import visible
from pairun.openpai.original.met import Met
from pairun.openpai.original.table import differences
from pairun.report.problems import problem_data
from pairun.report.shown import fit
from pairun.report.tint import Tint
from pairun.review.diff.againstopenpai import JobAgainst, Pair, RoleAgainst

SCHEMA = 1
_SHOWN_VARIABLES = 4


def print_against(compared: JobAgainst, stream: IO[str]) -> None:
    """Print what both runtimes do with a job."""
    style = Tint(stream)
    mask = compared.vault.text
    if compared.job is None:
        return
    head = f"job {compared.job.name} of {compared.job.user} · {compared.path}"
    print(visible(f"{head} · OpenPAI's runtime and pairun"), file=stream)
    for role in compared.roles:
        print(style(f"role {role.name}", "bold"), file=stream)
        for line in _role(role, style):
            print(f"  {mask(line)}", file=stream)
    cases = {c.id for r in compared.roles for c in r.cases}
    print(f"{len(cases)} of {len(differences())} cases in which pairun differs on purpose apply "
          "to this job; docs/reference/openpai.md lists all", file=stream)  # fmt: skip


def _role(role: RoleAgainst, style: Tint) -> list[str]:
    lines = []
    if role.ends is not None:
        ids = ", ".join(dict.fromkeys(c.id for c in role.cases if c.ends == role.ends))
        lines.append(style(f"OpenPAI's init ends with {role.ends}: {ids}", "red"))
    width = max((len(p.there) for p in role.pairs), default=0)
    for part, pairs in groupby(role.pairs, key=lambda p: p.part):
        lines.append(part)
        lines += [f"  {visible(_pair(pair, width))}" for pair in pairs]
    more = role.more_variables
    shown = ", ".join(more[:_SHOWN_VARIABLES]) + (", …" if len(more) > _SHOWN_VARIABLES else "")
    also = f", {len(more)} more here: {shown}" if more else ""
    lines.append(visible(f"environment: {len(role.variables)} variables in both{also}"))
    if role.cases:
        lines.append("cases of this role")
    table = {d.id: d for d in differences()}
    for case in role.cases:
        what = visible(f"{case.place} {fit(case.what, 200)}")
        lines.append(f"  {style(case.id, 'yellow')}  {what}")
        lines.append(f"    OpenPAI: {table[case.id].there}")
        lines.append(f"    pairun: {table[case.id].here}")
    return lines


def _pair(pair: Pair, width: int) -> str:
    here = ", ".join(pair.here) or "-"
    codes = ""
    if pair.part == "init" and pair.codes_there != pair.codes_here:
        codes = f"  (exit codes: {pair.codes_there or '-'} → {pair.codes_here or '-'})"
    return f"{pair.there or '-':{width}}  {here}{codes}"


def against_data(compared: list[JobAgainst]) -> dict[str, Any]:
    """The comparison as plain data."""
    return {"schema": SCHEMA, "jobs": {c.path: _job_data(c) for c in compared}}


def _job_data(compared: JobAgainst) -> dict[str, Any]:
    document = {
        "name": compared.job.name if compared.job else None,
        "roles": {r.name: _role_data(r) for r in compared.roles},
        "problems": [problem_data(p, compared.vault) for p in compared.problems],
    }
    return compared.vault.record(document)


def _role_data(role: RoleAgainst) -> dict[str, Any]:
    return {
        "openpai_init_ends_with": role.ends,
        "tasks": [
            {
                "part": p.part,
                "openpai": p.there or None,
                "pairun": list(p.here),
                "exit_codes": {"openpai": p.codes_there, "pairun": p.codes_here},
            }
            for p in role.pairs
        ],
        "environment": {"both": [*role.variables], "pairun": [*role.more_variables]},
        "cases": [_case_data(c) for c in role.cases],
    }


def _case_data(case: Met) -> dict[str, Any]:
    difference = next(d for d in differences() if d.id == case.id)
    return {
        "id": case.id,
        "place": str(case.place),
        "what": case.what,
        "openpai": difference.there,
        "pairun": difference.here,
    }

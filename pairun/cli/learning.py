"""The part of ``pairun diagnose`` that learns rules from a folder of logs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from pairun.base.escapes import visible
from pairun.cli.options import refusal_code
from pairun.diagnose.circumstances import Circumstances
from pairun.errors import PairunError, Problem, Problems
from pairun.learning.asking import ask
from pairun.learning.clusters import Cluster
from pairun.learning.drafts import Answers, Draft, draft_of, file_of
from pairun.learning.hidden import without_secrets
from pairun.learning.survey import Survey
from pairun.learning.trials import Trial, try_rules
from pairun.playbook.content import open_content
from pairun.playbook.document.reading import read_file
from pairun.playbook.rules import Rules, read_rules
from pairun.report.problems import print_problems

SHOWN = 10
"""How many clusters of logs to show and to draft a rule for."""

_SHOWN_EXAMPLES = 2


def learn(args: argparse.Namespace) -> int:
    """Draft rules into a new file, or try the rules of an existing one; returns the exit code."""
    folder, out = args.learn, args.out
    if args.logs or args.json:
        message = "--learn takes a folder of logs and --out FILE, and no other log"
        raise PairunError(Problem("PR801", message))
    if not out:
        raise PairunError(Problem("PR801", "--out FILE is missing: where to write the drafts"))
    if not os.path.isdir(folder):
        raise PairunError(Problem("PR108", f"{visible(folder)} is not a folder of logs"))
    if not os.path.isdir(os.path.dirname(os.path.abspath(out))):
        raise _unwritable(out, "the folder does not exist")
    problems = Problems()
    rules = read_rules(open_content(args.root, os.environ), problems)
    print_problems(problems, args.vault)
    if os.path.exists(out):
        return _try(args, rules)
    survey = Survey()
    facts = Circumstances(exit_code=args.exit_code)
    survey.read(folder, rules.table(), lambda text: without_secrets(text, args.vault), facts)
    clusters = survey.clusters.largest(SHOWN)
    _print_summary(survey, clusters)
    drafts, answers = _drafts(survey, clusters, rules)
    if not drafts:
        return 0
    _write(out, args.vault.text(file_of(drafts, answers, folder)))
    if any(each != Answers() for each in answers):
        return _try(args, rules)
    print(f"\nwrote {visible(out)}: fill in the class of each rule, and run the same command again")
    return 0


def _write(path: str, text: str) -> None:
    try:
        with open(path, "x", encoding="utf-8") as f:
            f.write(text)
    except OSError as e:
        raise _unwritable(path, e.strerror or str(e)) from e


def _unwritable(path: str, why: str) -> PairunError:
    return PairunError(Problem("PR812", f"{visible(path)} cannot be written: {why}"))


def _prompt(question: str) -> str:
    """The answer to a question; empty after Ctrl-D."""
    try:
        return input(question)
    except EOFError:
        print()
        return ""


def _print_summary(survey: Survey, clusters: Sequence[Cluster]) -> None:
    _print_unread(survey.unread)
    shown = sum(cluster.count for cluster in clusters)
    print(f"{_logs(survey.logs)}, {survey.unexplained} without an explanation", end="")
    print(f"; the most frequent endings are those of {_logs(shown)}" if clusters else "")
    if survey.empty:
        names = ", ".join(map(visible, survey.empty[:_SHOWN_EXAMPLES]))
        more = ", …" if len(survey.empty) > _SHOWN_EXAMPLES else ""
        print(f"{_logs(len(survey.empty))} empty: {names}{more}")
    if survey.clusters.forgotten:
        print(f"{_logs(survey.clusters.forgotten)} with rare endings were not counted")


def _drafts(
    survey: Survey, clusters: Sequence[Cluster], rules: Rules
) -> tuple[list[Draft], list[Answers]]:
    """Draft a rule for each cluster of logs; returns the drafts with the person's answers."""
    asks = sys.stdin.isatty() and sys.stdout.isatty()
    drafts: list[Draft] = []
    answers: list[Answers] = []
    others = [*survey.clusters.lines(), *survey.healthy]
    for number, cluster in enumerate(clusters, 1):
        _print_cluster(number, cluster)
        draft = draft_of(cluster, others, {*rules.samples, *(each.id for each in drafts)})
        if draft is None:
            print("   no rule: no pattern can be made of this line")
            continue
        drafts.append(draft)
        answers.append(ask(_prompt, print) if asks else Answers())
    return drafts, answers


def _print_cluster(number: int, cluster: Cluster) -> None:
    print(f"\n{number}. {cluster.template}")
    print(f"   {cluster.extent}")
    if cluster.points_at:
        print(f"   {visible(cluster.points_at)}")
    for example in cluster.examples[:_SHOWN_EXAMPLES]:
        print(f"   {visible(example.file)}:{example.line}: {example.text}")


def _try(args: argparse.Namespace, rules: Rules) -> int:
    """Try the rules of a file, and print which ones are good enough."""
    problems = Problems()
    unread: list[tuple[str, str]] = []
    facts = Circumstances(exit_code=args.exit_code)
    document = read_file(args.out, "learned")
    trial = try_rules(document, rules, args.learn, problems, unread, facts)
    _print_unread(unread)
    print_problems(problems, args.vault)
    if problems.errors:
        return refusal_code(PairunError(*problems.errors))
    _print_trial(trial, visible(args.out))
    return 0


def _print_trial(trial: Trial, file: str) -> None:
    for name, klass in trial.rules.items():
        print(f"{name} ({klass}): explains {_logs(trial.explained[name])}")
    for name in trial.without_class:
        print(f"{name}: no class yet")
    if trial.rules:
        print(
            f"no other verdict changes on {trial.samples} labelled samples and {_logs(trial.logs)}"
        )
        print(f"next: copy {file} to the folder diagnosis of a content root")
    else:
        print(f"next: fill in the class of a rule in {file}")


def _print_unread(unread: Sequence[tuple[str, str]]) -> None:
    for path, why in unread[:SHOWN]:
        print(f"warning: {visible(path)} cannot be read: {why}", file=sys.stderr)
    if len(unread) > SHOWN:
        print(f"warning: {len(unread) - SHOWN} more files cannot be read", file=sys.stderr)


def _logs(count: int) -> str:
    return f"{count} log{'s' * (count != 1)}"

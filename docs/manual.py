"""The manual page pairun(1), in roff, from the parsers of the command line (man-pages(7), groff_man(7))."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pairun
from pairun.cli.examples import examples_of
from pairun.cli.main import parser_of, shown_commands

EXITS = (
    ("0", "done; for run and submit --wait: the job succeeded"),
    ("1", "invalid input: pairun prints every problem"),
    ("2", "invalid usage; with --exit-code: something would change or differs"),
    ("other", "run and submit --wait: the exit code of the first instance that failed"),
)
VARIABLES = (
    ("PAIRUN_PATH", "content roots, separated by colons, above the built-in one"),
    ("PAIRUN_IMAGE", "the image of init containers for manifest, submit, inject and doctor"),
    ("KUBECONFIG", "the kubeconfig"),
    ("NO_COLOR", "if set, no colours"),
)


def manual() -> Iterator[str]:
    """The lines of the page."""
    commands = shown_commands()
    yield f'.TH PAIRUN 1 "" "pairun {pairun.__version__}" "User Commands"'
    yield ".SH NAME\npairun \\- playbooks for the two phases in which a deep-learning job starts"
    yield ".SH SYNOPSIS\n.B pairun \\-\\-dry\\-run\n.IR JOB ...\n.br\n.B pairun\n.I COMMAND\n.RI [ ARGUMENT ...]"
    yield ".SH DESCRIPTION"
    yield "pairun runs the init phase and the runtime phase of a job as playbooks of idempotent tasks, on"
    yield "this machine and on Kubernetes. It reviews a job before it runs, and says why it failed."
    yield ".SH COMMANDS"
    for name in ("", *commands):
        yield from _command(name, parser_of(name))
    yield from _listed("EXIT STATUS", EXITS)
    yield from _listed("ENVIRONMENT", VARIABLES)
    yield ".SH SEE ALSO"
    yield "pairun doc NAME prints the page of a module, plugin, keyword, error id or class of failure."


def _listed(title: str, items: tuple[tuple[str, str], ...]) -> Iterator[str]:
    yield f".SH {title}"
    for name, meaning in items:
        yield f".TP\n.B {_roff(name)}\n{_roff(meaning)}"


def _command(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    """A command with its arguments and examples, and below it its own commands."""
    yield f".SS {_roff(f'pairun {name}' if name else 'pairun --dry-run')}"
    sentence = (parser.description or "").rstrip(".")
    yield f"{_roff(sentence[:1].upper() + sentence[1:])}."
    actions = [a for a in parser._actions if a.help != argparse.SUPPRESS and a.dest != "help"]
    for action in actions:
        if isinstance(action, argparse._SubParsersAction):
            continue
        names = ", ".join(action.option_strings)
        name_of_value = action.dest.upper() if names else action.dest
        value = action.metavar if isinstance(action.metavar, str) else name_of_value
        term = f"\\fB{_roff(names)}\\fR" if names else ""
        if action.nargs != 0 or not names:
            term = f"{term} \\fI{_roff(value)}\\fR".strip()
        choices = f" (one of {', '.join(map(str, action.choices))})" if action.choices else ""
        yield f".TP\n{term}\n{_roff((action.help or '').replace('%%', '%') + choices)}"
    for example in examples_of(f"pairun {name}"):
        yield f".PP\nExample: {_roff(example.purpose)}\n.PP\n.in +4\n.EX\n{_roff(example.command)}\n.EE\n.in"
    for action in actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb, its in action.choices.items():
                yield from _command(f"{name} {verb}".strip(), its)


def _roff(text: str) -> str:
    """Text without meaning to roff: no escapes, no requests, hyphens that can be copied."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("'", "\\(aq")
    return f"\\&{text}" if text.startswith(".") else text

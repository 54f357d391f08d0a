"""The command ``pairun``: finds the command and imports only its file."""

from __future__ import annotations

import argparse
import atexit
import gc
import importlib
import os
import sys
from collections.abc import Sequence

import pairun
from pairun.cli.commandhelp import CommandParser, misplaced, no_command, parse
from pairun.errors import PairunError
from pairun.secrets.vault import Vault

GROUPS = {
    "everyday": {
        "plan": "review a job: what will run in both phases of every role, and who set each value",
        "run": "run every instance of a job on this machine",
        "submit": "create a job in a Kubernetes cluster and follow it",
        "status": "show the state of a job in a cluster",
        "logs": "print the logs of a job in a cluster",
        "delete": "stop a job in a cluster and delete its objects",
        "diagnose": "find out why a job failed: the cause, whose fault it is, and what to do",
        "report": "show what happened in a run and where the time went",
    },
    "clusters": {
        "manifest": "print a job's Kubernetes objects, or an engine's retry rules, as YAML",
        "inject": "add pairun to the Pod templates of any manifest: PID 1, diagnosis, gang barrier",
        "doctor": "check that a cluster is ready for jobs: what is missing and how to fix it",
        "diff": "show what another content root or an upgrade changes for a job",
    },
    "authors": {
        "new": "create a commented job, plugin, module or content root to start from",
        "lint": "check job files, playbooks and plugin specs",
        "doc": "show the documentation of a module, plugin, keyword or error",
        "schema": "print the JSON Schema of a format, for editors",
        "completion": "print the completion script for bash, zsh or fish",
    },
    "moving from OpenPAI": {
        "convert": "convert an OpenPAI job for YARN, or a Framework, to a protocol v2 job file",
    },
    "inside a container": {
        "init": "run the init phase of a Pod (the init container's command)",
        "runtime": "run the runtime phase of a Pod (PID 1 of the user's container)",
        "barrier": "wait, from your code, until all instances of the job arrive",
        "progress": "report progress from your code, for advice on retries",
    },
}
"""The commands that people type, as `pairun --help` groups them, each with its description."""

HIDDEN = ("tasks", "summary", "rendezvous")
"""Commands that only pairun itself types."""

COMMANDS = {
    **{name: text for group in GROUPS.values() for name, text in group.items()},
    **dict.fromkeys(HIDDEN, argparse.SUPPRESS),
}

IN_A_CONTAINER = ("init", "runtime", "tasks", "summary", "rendezvous")
"""Commands that complete their work even if no reader takes their output."""

WRONG_USAGE = 2


def main(argv: list[str] | None = None) -> int:
    """Run pairun.

    Args:
        argv: the arguments, without the program's name.

    Returns:
        The exit code; docs/exit-codes.md lists them.
    """
    argv = sys.argv[1:] if argv is None else argv
    vault = Vault()
    # `pairun --dry-run JOB`, the older name of `pairun plan JOB`, is not a sub-command.
    command = argv[0] if argv and argv[0] in COMMANDS else ""
    if command != "runtime":
        # A start creates many objects and frees few, so garbage collection would cost 10 % of it.
        # Skip it at exit, too: the process ends anyway. Only PID 1 runs for long.
        gc.set_threshold(100_000)
        atexit.register(gc.freeze)
    if None in (sys.stdin, sys.stdout, sys.stderr):
        from pairun.cli.streams import open_streams

        open_streams(lenient=command in IN_A_CONTAINER)
    if "utf" not in (sys.stdout.encoding or "").lower():
        from pairun.cli.streams import speak_everywhere

        speak_everywhere()
    try:
        try:
            return _run(command, argv[1:] if command else argv, vault)
        finally:
            # Flush now, while an error can still be reported.
            sys.stdout.flush()
    except PairunError as e:
        from pairun.cli.options import refusal_code
        from pairun.report.problems import print_problems

        print_problems(e.problems, vault)
        return refusal_code(e)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        from pairun.cli.streams import give_up_stdout

        # the reader of the output is gone; stop without an error
        give_up_stdout()
        sys.stderr.close()
        return 141
    except Exception as e:  # noqa: BLE001 - the last resort, which prints it
        if isinstance(e, OSError) and e.filename is None and _stdout_fails():
            from pairun.cli.streams import give_up_stdout, unwritable

            give_up_stdout()
            print(f"error: {unwritable(e)}", file=sys.stderr)
            return 1
        from pairun.report.problems import print_unforeseen

        print_unforeseen(e, vault)
        return 1


def _stdout_fails() -> bool:
    """Whether standard output rejects all writes; called after an error without a file name."""
    try:
        # A failed write of a large text leaves the buffer empty, so another line shows the error.
        sys.stdout.write("\n")
        sys.stdout.flush()
    except OSError:
        return True
    return False


def _run(command: str, argv: list[str], vault: Vault) -> int:
    """Run a command; its arguments contain the process's only vault."""
    if command:
        args = parse(parser_of(command), argv, argparse.Namespace(vault=vault))
        return int(importlib.import_module(f"pairun.cli.{command}").run(args))
    return _top(argv, vault)


def parser_of(command: str) -> argparse.ArgumentParser:
    """The parser of a command; for an empty name the parser of `pairun --dry-run`."""
    if not command:
        return _top_parser()
    parser = CommandParser(prog=f"pairun {command}", description=COMMANDS[command])
    add_command(parser, command)
    return parser


def add_command(parser: argparse.ArgumentParser, command: str) -> None:
    """Declare the arguments of a command."""
    importlib.import_module(f"pairun.cli.{command}").add_arguments(parser)


def add_top_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options that need no command."""
    parser.add_argument("--version", action="store_true",
                        help="print the version and the digest of the default playbooks")  # fmt: skip
    parser.add_argument("--dry-run", action="store_true",
                        help="review the jobs without probing or changing anything, as `pairun plan` does")  # fmt: skip


def shown_commands() -> dict[str, str]:
    """The commands that people type, each with its description."""
    return {name: text for name, text in COMMANDS.items() if name not in HIDDEN}


def _top_parser() -> argparse.ArgumentParser:
    from pairun.cli import plan

    listed = "\n\n".join(
        "\n".join([f"{title}:", *(f"  {name:11}{text}" for name, text in group.items())])
        for title, group in GROUPS.items()
    )
    parser = CommandParser(
        prog="pairun",
        usage="pairun COMMAND ...  |  pairun --dry-run JOB...",
        description="Plan, run and watch jobs; `pairun --dry-run JOB` is `pairun plan JOB`.",
        epilog=f"{listed}\n\n`pairun COMMAND --help` prints the help of one.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_top_options(parser)
    plan.add_arguments(parser)
    return parser


def _top(argv: list[str], vault: Vault) -> int:
    if argv == ["--version"]:
        # Scripts call this often: do not import what only a review needs.
        print(version())
        return 0
    parser = _top_parser()
    if argv and (mistake := misplaced(argv, shown_commands())):
        parser.error(mistake)
    args = parse(parser, argv, argparse.Namespace(vault=vault))
    if args.version:
        print(version(args.root))
        return 0
    if not args.dry_run:
        parser.print_usage(sys.stderr)
        if argv:
            print(f"pairun: error: {no_command(args.jobs, shown_commands())}", file=sys.stderr)
            return WRONG_USAGE
        parser.print_help()
        return 0
    from pairun.cli import plan

    return plan.run(args)


def version(roots: Sequence[str] = ()) -> str:
    """The version, the digest of every content root, and the parts of the image's bundle.

    Args:
        roots: content roots in addition to the built-in one.
    """
    from pairun.playbook.content import open_content
    from pairun.volume.bundle import IN_THE_IMAGE

    lines = [f"pairun {pairun.__version__}"]
    opened = open_content(list(roots), os.environ).roots
    lines += [f"{root.layer} playbooks {root.digest()} ({root.path})" for root in opened]
    return "\n".join([*lines, *_versions_in(IN_THE_IMAGE)])


def _versions_in(bundle: str) -> list[str]:
    """The lines that describe a bundle, if there is one: the start of its digest, and its content."""
    import hashlib
    import shutil
    import subprocess

    if shutil.which(bundle) is None:
        return []
    with open(bundle, "rb") as f:
        digest = hashlib.file_digest(f, "sha256").hexdigest()
    asked = subprocess.run(
        [bundle, "--version"], capture_output=True, text=True, check=False, timeout=10
    )
    inside = ", ".join(asked.stdout.splitlines()[2:])
    return [f"bundle {digest[:12]} ({bundle})", f"  {inside}"]

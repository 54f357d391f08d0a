"""The command ``pairun``: finds the command and imports only its file."""

from __future__ import annotations

import argparse
import atexit
import gc
import importlib
import sys

from pairun.cli.commandhelp import CommandParser, parse
from pairun.errors import PairunError
from pairun.secrets.vault import Vault

COMMANDS = {
    "run": "run every instance of a job on this machine",
    "init": "run the init phase of a Pod (the init container's command)",
    "runtime": "run the runtime phase of a Pod (PID 1 of the user's container)",
    "manifest": "print a job's Kubernetes objects as YAML for kubectl apply",
    "inject": "add pairun to the Pod templates of any manifest: PID 1, diagnosis, gang barrier",
    "submit": "create a job in a Kubernetes cluster and follow it",
    "status": "show the state of a job in a cluster",
    "logs": "print the logs of a job in a cluster",
    "delete": "stop a job in a cluster and delete its objects",
    "doctor": "check that a cluster is ready for jobs: what is missing and how to fix it",
    "barrier": "wait, from your code, until all instances of the job arrive",
    "progress": "report progress from your code, for advice on retries",
    "new": "create a commented job, plugin, module or content root to start from",
    "lint": "check job files, playbooks and plugin specs",
    "convert": "convert an OpenPAI job for YARN, or a Framework, to a protocol v2 job file",
    "diagnose": "find out why a job failed: the cause, whose fault it is, and what to do",
    "report": "show what happened in a run and where the time went",
    "doc": "show the documentation of a module, plugin, keyword or error",
    "schema": "print the JSON Schema of a format, for editors",
    "diff": "show what another content root or an upgrade changes for a job",
    "export": "print which exit codes to retry, for Kubernetes, JobSet and OpenPAI",
    "completion": "print the completion script for bash, zsh or fish",
    "tasks": argparse.SUPPRESS,
    "summary": argparse.SUPPRESS,
    "rendezvous": argparse.SUPPRESS,
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
    # `pairun --dry-run JOB` is the most common use, and not a sub-command.
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
    importlib.import_module(f"pairun.cli.{command}").add_arguments(parser)
    return parser


def shown_commands() -> dict[str, str]:
    """The commands that people type, each with its description."""
    return {name: text for name, text in COMMANDS.items() if text is not argparse.SUPPRESS}


def _top_parser() -> argparse.ArgumentParser:
    from pairun.cli import dry_run

    listed = "\n".join(f"  {name:11}{text}" for name, text in shown_commands().items())
    parser = CommandParser(
        prog="pairun",
        usage="pairun --dry-run JOB...  |  pairun COMMAND ...",
        description="Review a job file: what will run in both phases of every role, and who set "
        "each value.",
        epilog=f"commands:\n{listed}\n\n`pairun COMMAND --help` prints the help of one.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true",
                        help="print the version and the digest of the default playbooks")  # fmt: skip
    parser.add_argument("--dry-run", action="store_true",
                        help="review the jobs without probing or changing anything")  # fmt: skip
    dry_run.add_arguments(parser)
    return parser


def _top(argv: list[str], vault: Vault) -> int:
    if argv == ["--version"]:
        # Scripts call this often: do not import what only a review needs.
        from pairun.cli.versions import version

        print(version())
        return 0
    from pairun.cli.suggesting import no_command, suggested

    parser = _top_parser()
    if argv and (suggestion := suggested(argv, shown_commands())):
        parser.error(suggestion)
    args = parse(parser, argv, argparse.Namespace(vault=vault))
    if args.version:
        from pairun.cli.versions import version

        print(version(args.root))
        return 0
    if not args.dry_run:
        parser.print_usage(sys.stderr)
        if argv:
            print(f"pairun: error: {no_command(args.jobs, shown_commands())}", file=sys.stderr)
            return WRONG_USAGE
        parser.print_help()
        return 0
    from pairun.cli import dry_run

    return dry_run.run(args)

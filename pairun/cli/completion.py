"""``pairun completion``: the script that completes pairun's commands in bash, zsh or fish.

The scripts are static: completion does not start pairun. By hand, because shtab 1.13 completes no file name
with a space in bash, and no ``--root=DIR``, ``doc NAME`` or command in zsh as it is typed here in tests.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterator
from shlex import quote
from typing import NamedTuple

FILES = ("JOB", "FILE", "LOG")
"""The placeholders of arguments that are files."""
ROOTS = ("OLD_ROOT", "NEW_ROOT")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("shell", choices=tuple(WRITERS))


def run(args: argparse.Namespace) -> int:
    """Print the script of a shell."""
    print("\n".join(WRITERS[args.shell](described())))
    return 0


def described() -> list[Command]:
    """Describe every command that people type, from its parser; first the one without a name."""
    from pairun.cli.main import COMMANDS, parser_of

    shown = {n: text for n, text in COMMANDS.items() if text is not argparse.SUPPRESS}
    return [_command(n, text, parser_of(n)) for n, text in {"": "", **shown}.items()]


def _command(name: str, text: str, parser: argparse.ArgumentParser) -> Command:
    options, arguments, repeats = [], [], False
    for action in parser._actions:
        if action.help == argparse.SUPPRESS:
            continue
        kind = _kind(name, action)
        if action.option_strings:
            value = None if action.nargs == 0 else kind
            flags = tuple(action.option_strings)
            options.append(Option(flags, (action.help or "").replace("%%", "%"), value))
        else:
            arguments.append(kind)
            repeats = action.nargs in ("*", "+")
    return Command(name, text, tuple(options), tuple(arguments), repeats)


def _kind(command: str, action: argparse.Action) -> Kind:
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if action.choices is not None:
        return Kind(words=tuple(map(str, action.choices)))
    if command == "doc" and not action.option_strings:
        from pairun.playbook.content import open_content
        from pairun.report.pages import names

        return Kind(words=tuple(names(open_content([], os.environ))))
    if metavar in ROOTS:
        return Kind("d", ("built-in",))
    if metavar == "DIR":
        return Kind("d")
    # An argument without choices is probably a file; an option's value is not.
    return Kind("f") if metavar in FILES or not action.option_strings else Kind()


class Kind(NamedTuple):
    """The possible values: some words, and ``f``iles, ``d``irectories or nothing else (``-``)."""

    paths: str = "-"
    words: tuple[str, ...] = ()


class Option(NamedTuple):
    """An option: its spellings, its description, and its possible values if it takes one."""

    flags: tuple[str, ...]
    help: str
    value: Kind | None


class Command(NamedTuple):
    """A command: its description, options and arguments; the last argument may repeat."""

    name: str
    help: str
    options: tuple[Option, ...]
    arguments: tuple[Kind, ...]
    repeats: bool


# --- bash ----------------------------------------------------------------------------------------

_BASH = r"""
_pairun() {
    local cur=${COMP_WORDS[COMP_CWORD]} command= first=1 taking= n=0 i word
    local options valued arguments more kind
    if (( COMP_CWORD > 1 )) && [[ " @COMMANDS@ " == *" ${COMP_WORDS[1]} "* ]]; then
        command=${COMP_WORDS[1]} first=2
    fi
    _pairun_about "$command"
    for (( i = first; i < COMP_CWORD; i++ )); do
        word=${COMP_WORDS[i]}
        # --root=DIR is three words here
        [[ $word == = ]] && continue
        if [[ -n $taking ]]; then taking=
        elif [[ " $valued " == *" $word "* ]]; then taking=$word
        elif [[ $word != -?* ]]; then (( n += 1 ))
        fi
    done
    [[ -n $taking && $cur == = ]] && cur=
    if [[ -n $taking ]]; then kind=$(_pairun_value "$command $taking")
    elif [[ $cur == -* ]]; then kind="-:$options"
    elif (( COMP_CWORD == 1 )); then kind="-:@COMMANDS@"
    else kind=${arguments[n]-$more}
    fi
    COMPREPLY=( $(compgen -W "${kind#*:}" -- "$cur") )
    # Paths are left to the shell, which knows how to quote them.
    case $kind in
    f:*) ;;
    d:*) compopt +o default -o plusdirs 2>/dev/null ;;
    *) compopt +o default 2>/dev/null ;;
    esac
}
complete -o default -F _pairun pairun"""


def _bash(commands: list[Command]) -> Iterator[str]:
    yield "# bash completion of pairun: source <(pairun completion bash)"
    yield "_pairun_about() {\n    case $1 in"
    for c in commands:
        taking = [f for o in c.options if o.value for f in o.flags]
        arguments = [_shell_kind(k) for k in c.arguments]
        more = arguments[-1] if c.repeats else "-:"
        yield f"    {quote(c.name)}) options={quote(' '.join(_flags(c)))} valued={quote(' '.join(taking))}"
        yield f"        arguments=({' '.join(map(quote, arguments))}) more={quote(more)} ;;"
    yield "    esac\n}\n_pairun_value() {\n    case $1 in"
    for c in commands:
        for o in c.options:
            if o.value and o.value != Kind():
                names = "|".join(quote(f"{c.name} {f}") for f in o.flags)
                yield f"    {names}) echo {quote(_shell_kind(o.value))} ;;"
    yield "    *) echo '-:' ;;\n    esac\n}"
    yield _BASH.strip("\n").replace("@COMMANDS@", " ".join(c.name for c in commands if c.name))


def _flags(command: Command) -> list[str]:
    return [f for o in command.options for f in o.flags]


def _shell_kind(kind: Kind) -> str:
    return f"{kind.paths}:{' '.join(kind.words)}"


# --- zsh -----------------------------------------------------------------------------------------


def _zsh(commands: list[Command]) -> Iterator[str]:
    yield "#compdef pairun\n# zsh completion of pairun: source <(pairun completion zsh)"
    yield "_pairun_roots() {\n  _alternative 'words:word:(built-in)' 'roots:content root:_files -/'\n}"
    yield "_pairun() {\n  local -a commands=("
    yield from (f"    {quote(f'{c.name}:{c.help}')}" for c in commands if c.name)
    yield "  )\n  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then"
    yield "    _describe -t commands command commands\n    return\n  fi\n  case $words[2] in"
    for c in sorted(commands, key=lambda c: c.name == ""):
        pattern = f"{c.name}) shift words; (( CURRENT-- ));" if c.name else "*)"
        yield f"  {pattern} _arguments -s -S \\"
        for o in c.options:
            # --root DIR and --root=DIR
            equals, takes = ("", "") if o.value is None else ("=", f":value:{_zsh_action(o.value)}")
            for flag in o.flags:
                yield f"    {quote(f'*{flag}{equals}[{_zsh_text(o.help)}]{takes}')} \\"
        for n, kind in enumerate(c.arguments, 1):
            place = "*" if c.repeats and n == len(c.arguments) else str(n)
            yield f"    {quote(f'{place}:argument:{_zsh_action(kind)}')} \\"
        yield "    ;;"
    yield "  esac\n}"
    # As a file of $fpath the text is the function's body; when sourced, it declares the function.
    yield 'if [[ $funcstack[1] == _pairun ]]; then _pairun "$@"; else compdef _pairun pairun; fi'


def _zsh_action(kind: Kind) -> str:
    if kind.paths == "d" and kind.words:
        return "_pairun_roots"
    paths = {"f": "_files", "d": "_files -/", "-": " "}[kind.paths]
    return f"({' '.join(kind.words)})" if kind.words else paths


def _zsh_text(text: str) -> str:
    return re.sub(r"([\[\]:\\])", r"\\\1", text)


# --- fish ----------------------------------------------------------------------------------------

_FISH = """# fish completion of pairun: pairun completion fish | source
function __pairun_in
    set -l words (commandline -opc)
    set -l command ''
    test (count $words) -ge 2; and contains -- $words[2] @COMMANDS@; and set command $words[2]
    test "$command" = "$argv[1]"
end
function __pairun_first
    test (count (commandline -opc)) -eq 1
end
complete -c pairun -e
complete -c pairun -f"""


def _fish(commands: list[Command]) -> Iterator[str]:
    yield _FISH.replace("@COMMANDS@", " ".join(c.name for c in commands if c.name))
    for c in commands:
        if c.name:
            yield f"complete -c pairun -n __pairun_first -a {c.name} -d {_fish_text(c.help)}"
        inside = "complete -c pairun -n " + _fish_text(f"__pairun_in {c.name or repr('')}")
        for o in c.options:
            flags = " ".join(
                f"-l {f[2:]}" if f.startswith("--") else f"-s {f[1:]}" for f in o.flags
            )
            takes = "" if o.value is None else f" -x{_fish_values(o.value)}"
            yield f"{inside} {flags}{takes} -d {_fish_text(o.help)}"
        # Only diff has several arguments; there the shell offers the values of all.
        for kind in dict.fromkeys(c.arguments) if c.name else ():
            yield f"{inside}{' -F' if kind.paths == 'f' else ''}{_fish_values(kind)}"
    yield f"complete -c pairun -n {_fish_text('__pairun_in ' + repr('') + '; and not __pairun_first')} -F"


def _fish_values(kind: Kind) -> str:
    words = " ".join(kind.words)
    if kind.paths == "d":
        words = f"{words} (__fish_complete_directories)".strip()
    return f" -a {_fish_text(words)}" if words else ""


def _fish_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


WRITERS: dict[str, Callable[[list[Command]], Iterator[str]]] = {
    "bash": _bash,
    "zsh": _zsh,
    "fish": _fish,
}
"""Shell to the function that writes its script."""

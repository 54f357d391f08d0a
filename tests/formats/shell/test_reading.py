"""The reader of shell scripts: which variables a script uses, sets and guards."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairun.formats.shell.reading import read_shell

UNSET: list[tuple[str, list[str]]] = [
    ("echo $x", ["x"]),
    ('echo "${x}"', ["x"]),
    ("x=$x:1", ["x"]),
    ("echo $x; x=1", ["x"]),
    ("x=1 run $x", ["x"]),  # the arguments are expanded before the assignment
    ("echo ${x:-$y}", ["y"]),
    ("echo ${x%.*} ${y:1:2} ${#z} ${!w}", ["x", "y", "z", "w"]),
    ("echo ${x[0]}", ["x"]),
    ("cat <<EOF\n$x\nEOF", ["x"]),
    ("cat <<-EOF\n\t${x}\n\tEOF\necho $y", ["x", "y"]),
    ("cat <<A <<'B'\n$x\nA\n$y\nB\necho $z", ["x", "z"]),
    ("echo `echo $x` $(echo $y) <(echo $z)", ["x", "y", "z"]),
    ('echo "$(echo "$x")"', ["x"]),
    ('echo "$(case $k in a) echo $m;; esac)" $n', ["k", "m", "n"]),
    ("f() { echo $x; }", ["x"]),
    ("for i in $list; do echo $i; done", ["list"]),
    ("while true; do echo $x; done", ["x"]),
    ("echo $((x + $y))", ["y"]),
    ("case $a in\n  b) echo $c;;\nesac", ["a", "c"]),
    ("(echo $x)", ["x"]),
    ("run > $x 2>&1 <<< $y", ["x", "y"]),
    ("echo it\\'s $x", ["x"]),
    ("echo ${#} $x", ["x"]),
    ("echo $x # $y", ["x"]),
    ("echo a#$x", ["x"]),
    ("echo $é$x", ["x"]),
]
SILENT = [
    "echo ${x:-} ${x-} ${x:+a} ${x+a}",
    ": ${x:?give x} && echo $x",
    ": ${x:=1}; echo $x",
    "x=1; echo $x",
    "x+=1; echo $x",
    "export x=1; echo $x",
    "declare -i x=1; local y; readonly z=2; typeset w; echo $x$y$z$w",
    "for x in a b; do echo $x; done",
    "select x in a b; do echo $x; done",
    "for ((i = 0; i < 3; i++)); do echo $i; done",
    "read -r x y; echo $x $y",
    "while IFS= read -r x; do echo $x; done < file",
    "mapfile -t x; readarray y; echo $x $y",
    "printf -v x %s a; printf -vy %s a; echo $x $y",
    "while getopts ab: x; do echo $x $OPTARG; done",
    "let x=1; ((y = 2)); echo $x $y $((z = 3)) $z",
    "x=(a b); echo ${x[0]} ${x[@]}",
    "declare -A x; x[a]=1; echo ${x[a]}",
    "echo ${x[@]} ${y[*]} ${!z@} ${!z*}",
    "exec {x}>file; echo $x",
    "[ -v x ] && echo $x",
    "if [[ -v x ]]; then echo $x; fi",
    "if true; then x=1; else x=2; fi; echo $x",
    "for i in 1 2; do echo $x; x=$i; done",
    "f() { echo $x; }; x=1; f",
    "function f { echo $x; }; x=1; f",
    "f() ( echo $x; ); x=1; f",
    "set +u; echo $x",
    "set +eu; echo $x",
    "set +o nounset; echo $x",
    ". ./env; echo $x",
    "source env; echo $x",
    "source $(conda info --base)/bin/activate; echo $x",
    "f() { echo $x; }; source env; f",
    'eval "$(tool)"; echo $x',
    "module load cuda; echo $x",
    "echo '$x'",
    "awk '{ print $NF }' <<'EOF'\n$x\nEOF",
    r'echo \$x "\$x"',
    "# $x",
    "echo a # $x",
    "cat <<'EOF'\n$x\nEOF",
    'cat <<"EOF"\n$x\nEOF',
    "cat <<\\EOF\n$x\nEOF",
    "echo $'a\\'$x'",
    "echo $1 $@ $# $? $$ $! $* $- $0 ${1} ${@}",
    "trap 'echo $x' EXIT",
    "echo $ a$",
    "x=$(cat <<EOF\nit's\nEOF\n); echo $x",
]


@pytest.mark.parametrize(("script", "names"), UNSET, ids=[s for s, _ in UNSET])
def test_a_variable_that_is_unset(script: str, names: list[str]) -> None:
    """Each variable once, where it is first used."""
    unset = read_shell(script).unset()
    assert [m.name for m in unset] == names
    assert all(script[m.offset] == "$" for m in unset)


@pytest.mark.parametrize("script", SILENT)
def test_no_false_alarm(script: str) -> None:
    """A variable that is set, guarded, quoted, or that a file of the image may set."""
    assert read_shell(script).unset() == []


def test_characters_that_no_quote_holds() -> None:
    """Those in quotes, comments and here documents are text for people."""
    script = "python -c “a” 'ü' \"ä\" # ö\ncat <<E\nß\nE\n--é"
    assert [c for _, c in read_shell(script).bare] == ["“", "”", "é"]
    assert [script[n] for n, _ in read_shell(script).bare] == ["“", "”", "é"]


PIECES = ["$", "${", "}", "(", ")", "((", "))", "'", '"', "`", "<<", "<<-E", "E", "\n", " ", "x", "=", "case",
          "esac", "in", "for", "do", "done", "while", "function", "#", "\\", "[", "]", "[[", "-v", ":-", "&",
          "|", ";", ";;", "“", "!", "@", "$((", "<(", "$'", "{", "read", "set +u", "."]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=60).map("".join))
def test_any_text_is_read(text: str) -> None:
    """No text ends the reader in an error, and every place is in the text."""
    read = read_shell(text)
    assert all(0 <= m.offset <= len(text) for m in read.mentions)
    assert all(text[n] == c for n, c in read.bare)
    assert len(read.unset()) <= len(read.mentions)


@pytest.mark.parametrize("piece", ["$(", "{ ", "${x:-", "a (b) ", "cat <<E\n", "do ", "((", "'"])
def test_a_hostile_text_ends_in_silence(piece: str) -> None:
    """However deep it nests and however long it is, it is read in one pass."""
    assert len(read_shell(piece * 3_000).unset()) <= 1
    assert read_shell("echo $x\n" * 50_000).unset() == []  # too long to be read

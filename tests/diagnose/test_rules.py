"""Rules are data: a root's file adds, replaces and disables them, and a rule that lies is not used."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from pairun.diagnose.classes import CLASSES, NONE, UNKNOWN
from pairun.diagnose.lines import Log
from pairun.diagnose.signals import CERTAIN
from pairun.diagnose.table import SCHEMA_VERSION, Table
from pairun.diagnose.weighing import diagnose
from pairun.errors import Problems, Source
from pairun.playbook import ruletrial
from pairun.playbook.content import Content, Root, built_in_root
from pairun.playbook.document.reading import read_text
from pairun.playbook.readyrules import made_rules
from pairun.playbook.rules import Rules, check_rules, read_rules
from tests.diagnose.cases import TRACE
from tests.diagnose.messages import MESSAGES

RULE: dict[str, Any] = {
    "id": "site-reactor",
    "class": "storage_io_error",
    "patterns": [r"reactor (?P<reactor>\d+) scrammed"],
    "headline": "reactor {reactor} is off",
    "positive": ["reactor 7 scrammed", "ERROR reactor 12 scrammed at noon"],
    "negative": ["reactor 7 is on", "the reactor scrammed"],
}


def content(folder: Path, *documents: dict[str, Any]) -> Content:
    """The built-in root, and one root for each document."""
    roots = [built_in_root()]
    for n, document in enumerate(documents):
        path = folder / str(n) / "diagnosis"
        path.mkdir(parents=True)
        (path / "site.yaml").write_text(yaml.safe_dump(document))
        roots.append(Root(path=str(path.parent), layer="cluster"))
    return Content(roots)


def read(folder: Path, *documents: dict[str, Any]) -> tuple[Rules, list[str]]:
    """The rules, and the ids of what is wrong."""
    problems = Problems()
    rules = read_rules(content(folder, *documents), problems)
    assert not problems.errors
    return rules, [f"{p.id} {p.message}" for p in problems]


def test_no_two_built_in_rules_have_one_name() -> None:
    """The second one would replace the first."""
    files = sorted((Path(built_in_root().path) / "diagnosis").glob("*.yaml"))
    names = [r["id"] for file in files for r in yaml.safe_load(file.read_text())["rules"]]
    assert len(names) > 150
    assert len(set(names)) == len(names)


def test_the_built_in_rules_hold_on_their_samples() -> None:
    """Tried as a cluster's rules are, they have no problem."""
    problems = Problems()
    read_rules(Content([built_in_root()]), problems, trusted=False)
    assert [p.message for p in problems] == []


def test_every_sample_of_the_built_in_rules_is_diagnosed(rules: Rules, table: Table) -> None:
    """Each positive sample alone gets its rule's class; no negative one does by that rule."""
    for name, sample in rules.samples.items():
        rule = table.rules[name]
        for text in sample.positive if rule.weight >= CERTAIN else ():
            assert diagnose([Log(text.encode())], table).klass == rule.klass, text
        for text in sample.negative:
            assert diagnose([Log(text.encode())], table).rule != name, text


@pytest.mark.slow
def test_messages_of_common_software_get_their_class(table: Table) -> None:
    """Each message, alone or after a traceback, gets the class of its cause."""
    found = [(klass, diagnose([Log(text.encode())], table).klass, text) for klass, text in MESSAGES]
    assert [each for each in found if each[0] != each[1]] == []


def test_no_exception_of_python_is_unknown(table: Table) -> None:
    """A traceback that ends with a built-in exception, with or without a message, gets a class."""
    names = [
        name
        for name, kind in vars(builtins).items()
        if isinstance(kind, type) and issubclass(kind, Exception) and not name.endswith("Warning")
    ]
    ends = [name + end for name in names for end in ("", ": x")]
    logs = [Log(f"{TRACE}{end}\n".encode()) for end in ends]
    verdicts = {end: diagnose([log], table).klass for end, log in zip(ends, logs, strict=True)}
    assert [end for end, klass in verdicts.items() if klass in (NONE, UNKNOWN)] == []


def test_every_rule_says_where_its_message_comes_from(rules: Rules) -> None:
    """Each rule has a source."""
    assert [n for n, s in rules.samples.items() if not s.source.startswith("https://")] == []


def test_a_root_adds_a_rule(tmp_path: Path) -> None:
    """A cluster's own message gets a class, and its captures a headline."""
    rules, wrong = read(tmp_path, {"rules": [RULE]})
    found = diagnose([Log(b"12:00:01 reactor 7 scrammed\n")], rules.table())
    assert (found.klass, found.headline, wrong) == ("storage_io_error", "reactor 7 is off", [])


def test_lines_around_speak_for_and_against_a_rule(tmp_path: Path) -> None:
    """``near`` asks for something above, ``unless`` wants something nowhere around."""
    rule = {**RULE, "near": "control room", "unless": "drill"}
    rule["positive"] = [f"control room:\n{text}" for text in RULE["positive"]]
    rules, wrong = read(tmp_path, {"rules": [rule]})
    table = rules.table()
    assert wrong == []
    for text, klass in (
        ("control room\nreactor 7 scrammed\n", "storage_io_error"),
        ("reactor 7 scrammed\ncontrol room\n", "unknown"),
        ("control room\nreactor 7 scrammed\nit was a drill\n", "unknown"),
    ):
        assert diagnose([Log(text.encode())], table).klass == klass


def test_a_root_replaces_and_disables_rules_and_gives_exit_codes(tmp_path: Path) -> None:
    """What a later root says counts."""
    other = {**RULE, "class": "port_in_use", "retry": "never", "tell": "ask the site"}
    rules, wrong = read(
        tmp_path,
        {"rules": [RULE], "exit_codes": {"gpu_oom": 20, "host_oom": 21}},
        {"rules": [other], "disable": ["gpu-out-of-memory"], "exit_codes": {"gpu_oom": 30}},
    )
    assert wrong == []
    assert "gpu-out-of-memory" not in rules.samples
    assert rules.exit_codes == {"gpu_oom": 30, "host_oom": 21}
    found = diagnose([Log(b"reactor 7 scrammed\n")], rules.table())
    assert (found.klass, found.retry, found.advice) == ("port_in_use", "never", "ask the site")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"positive": ["reactor 7 scrammed", "reactor is off"]},
            "it does not match its own sample",
        ),
        ({"negative": ["reactor 9 scrammed", "b"]}, "it matches a sample that it must not match"),
        ({"patterns": [r"(a+)+ scrammed$"]}, "ms for one line"),
        ({"patterns": [r"scrammed ("]}, "is not a valid regular expression"),
        ({"patterns": [r"\d+|scrammed"]}, "needs a word of 4 letters"),
        ({"patterns": ["(" * 5000 + "scrammed" + ")" * 5000]}, "is nested too deep"),
        ({"patterns": ["scrammed{99999999999}"]}, "is not a valid regular expression"),
        (
            {
                "patterns": ["(?:q+)+!.*scrammed"],
                "positive": ["q! scrammed"] * 2,
                "negative": ["q" * 40 + " scrammed", "b"],
            },
            "more than 250 ms for its own samples",
        ),
    ],
)
def test_a_rule_that_lies_is_left_out(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    """PR794: a rule that misses its samples, takes others', or costs too much is not used."""
    rules, wrong = read(tmp_path, {"rules": [{**RULE, **change}]})
    assert "site-reactor" not in rules.samples
    assert len(wrong) == 1
    assert wrong[0].startswith("PR794")
    assert said in wrong[0]


def test_the_patterns_of_one_file_have_one_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file whose patterns take too long together is checked up to the limit, and no further."""
    monkeypatch.setattr(ruletrial, "FILE_S", 0.0)
    rules, wrong = read(tmp_path, {"rules": [{**RULE, "id": f"rule-{n}"} for n in range(9)]})
    assert "rule-8" not in rules.samples
    (only,) = wrong
    assert only.startswith(
        "PR794 pairun ignores the rules: the patterns of this file take more than 0 s"
    )


@pytest.mark.parametrize(
    ("document", "id_"),
    [
        ({"rules": [{**RULE, "colour": "red"}]}, "PR790"),
        ({"rules": [{**RULE, "class": "bad_luck"}]}, "PR791"),
        ({"rules": [{**RULE, "positive": ["reactor 7 scrammed"]}]}, "PR791"),
        ({"rules": [{k: v for k, v in RULE.items() if k != "negative"}]}, "PR792"),
        ({"disable": ["no-such-rule"]}, "PR793"),
    ],
)
def test_a_file_of_another_form_is_told_of(
    document: dict[str, Any], id_: str, tmp_path: Path
) -> None:
    """What is wrong with a file is said with its id, and the other rules stay."""
    rules, wrong = read(tmp_path, document)
    assert [w.split()[0] for w in wrong] == [id_]
    assert "gpu-out-of-memory" in rules.samples


def test_init_leaves_a_table_that_says_the_same(tmp_path: Path, rules: Rules) -> None:
    """What PID 1 reads is plain data, and knows every rule."""
    data = json.loads(made_rules(content(tmp_path, {"exit_codes": {"gpu_oom": 20}}), Problems()))
    table = Table(data)
    assert table.rules.keys() == rules.samples.keys()
    assert table.exit_codes == {"gpu_oom": 20}


def test_a_table_of_another_version_is_refused() -> None:
    """PID 1 does not guess what another version meant."""
    with pytest.raises(ValueError, match="version"):
        Table({"schema": SCHEMA_VERSION + 1, "rules": [], "exit_codes": {}})


def test_classes_say_whose_fault_they_are_and_what_to_do() -> None:
    """Every class has one line, a fault and an advice."""
    for name, kind in CLASSES.items():
        assert kind.meaning, name
        assert kind.advice or name == "none", name


def test_exit_codes_with_a_meaning() -> None:
    """Controllers take these codes for something else: a warning, with the codes that are free."""
    text = "exit_codes: {nccl_timeout: 254, host_oom: 137, gpu_oom: 1, segfault: 20, gpu_lost: 222}"
    problems = Problems()
    check_rules(read_text(Source("own.yaml", "cluster", text)), problems)
    assert not problems.errors
    assert [(p.id, p.message.split()[2]) for p in problems] == [
        ("PR798", code) for code in ("254", "137", "1", "222")
    ]
    assert all("3 to 123" in str(p.hint) for p in problems)

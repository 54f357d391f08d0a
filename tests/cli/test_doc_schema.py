"""``pairun doc`` and ``pairun schema``: what the code knows, for people and for editors."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from pairun.catalogue import CATALOGUE
from pairun.cli.main import parser_of, shown_commands
from pairun.contract.arguments import arguments
from pairun.job.jsyaml import JS
from pairun.playbook.content import Content, built_in_root
from pairun.playbook.document.reading import read_file
from pairun.playbook.keywords import KEYWORDS

if TYPE_CHECKING:
    from tests.cli.conftest import Shell

CONTENT = Content([built_in_root()])
FORMATS = ("playbook", "plugin-spec", "policy", "job", "extras")


@pytest.mark.parametrize("name", sorted(CONTENT.modules))
def test_a_modules_page(shell: Shell, name: str) -> None:
    """Its sentence, phases, privileges, every argument with its doc, and the example."""
    out = shell("doc", name).out
    cls = CONTENT.module(name)
    assert f"module {name}" in out
    assert (cls.__doc__ or "").split("\n")[0].replace("``", "`") in out
    for argument in arguments(cls):
        assert f"  {argument.name} (" in out
        assert argument.doc in out
    assert ", ".join(cls.phases) in out
    assert cls.example.splitlines()[0] in out


@pytest.mark.parametrize("name", sorted(CONTENT.specs))
def test_a_plugins_page(shell: Shell, name: str) -> None:
    """Its sentence, its parameters and the modules it uses."""
    spec = CONTENT.document(*CONTENT.specs[name]).plain()
    out = shell("doc", "plugin", name).out
    assert f"plugin {name}\n  {spec['summary']}" in out
    for parameter in spec["parameters"]["properties"]:
        assert f"  {parameter} (" in out


@pytest.mark.parametrize("name", sorted(KEYWORDS))
def test_a_keywords_page(shell: Shell, name: str) -> None:
    """Its meaning, where it may stand, and an example."""
    out = shell("doc", "keyword", name).out
    assert f"keyword {name}\n  {KEYWORDS[name].meaning}" in out
    assert "used in: " in out


@pytest.mark.parametrize("id_", sorted(CATALOGUE))
def test_an_errors_page(shell: Shell, id_: str) -> None:
    """What an id means for ever, and what to do; ids are taken in lower case too."""
    out = shell("doc", id_.lower()).out
    assert out == f"{id_}: {CATALOGUE[id_].title}\n  {CATALOGUE[id_].advice}\n"


@pytest.mark.parametrize(
    ("listing", "names"),
    [
        ("", [*CONTENT.modules, *CONTENT.specs, *KEYWORDS]),
        ("modules", [*CONTENT.modules]),
        ("plugins", [*CONTENT.specs]),
        ("keywords", [*KEYWORDS]),
        ("errors", [*CATALOGUE]),
    ],
)
def test_a_listing_names_everything(shell: Shell, listing: str, names: list[str]) -> None:
    """Nothing that exists is missing from its list."""
    said = shell("doc", *filter(None, [listing]))
    assert said.code == 0
    for name in names:
        assert name in said.out


def test_a_name_that_nobody_has(shell: Shell) -> None:
    """The nearest name is shown, and it is an error."""
    said = shell("doc", "git_clon")
    assert (said.code, said.ids) == (2, ["PR801"])
    assert "did you mean 'git_clone'?" in said.err


def test_the_overview_says_what_each_name_is(shell: Shell) -> None:
    """Every module, plugin and keyword stands there with its sentence, and how many errors."""
    out = shell("doc").out
    for name in CONTENT.modules:
        sentence = (CONTENT.module(name).__doc__ or "").splitlines()[0].replace("``", "`")
        assert f"  {name:18}{sentence}\n" in out
    for name, spec in CONTENT.specs.items():
        assert f"  {name:18}{CONTENT.document(*spec).plain()['summary']}\n" in out
    for keyword in KEYWORDS.values():
        assert f"  {keyword.name:18}{keyword.meaning}\n" in out
    assert f"{len(CATALOGUE)} errors and warnings" in out
    assert "``" not in out


def test_a_name_that_two_kinds_have(shell: Shell) -> None:
    """Without a kind both pages come, each under its heading; with one only that."""
    both = [n for n in CONTENT.modules if n in CONTENT.specs]
    assert both, "the default content has such a name"
    for name in both:
        out = shell("doc", name).out
        assert out.startswith(f"module {name}\n")
        assert f"\n\nplugin {name}\n" in out
        assert f"module {name}" not in shell("doc", "plugin", name).out
        assert f"plugin {name}" not in shell("doc", "module", name).out


def test_a_name_of_another_kind(shell: Shell) -> None:
    """Asked for a module, a plugin's page is not shown: how to ask for it is."""
    said = shell("doc", "module", "git")
    assert (said.code, said.ids, said.out) == (2, ["PR801"], "")
    assert "there is no module 'git'" in said.err
    assert "it is a plugin: pairun doc plugin git" in said.err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["pr40"], "did you mean 'PR40"),
        (["error", "PR999"], "PR99"),
        (["keyword", "retrys"], "did you mean 'retries'?"),
        (["module", "gitclone"], "did you mean 'git_clone'?"),
        (["module", "retries"], "it is a keyword: pairun doc keyword retries"),
        (["module", "errors"], "`pairun doc` lists all of them"),
        (["moduls"], "did you mean 'modules'?"),
        (["diff"], "it is a command: pairun diff --help"),
        (["nounset"], "it is an argument of user_command: pairun doc user_command"),
        (["git", "gti_clone"], "did you mean 'git_clone'?"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_the_nearest_name_is_of_the_kind_that_was_asked_for(
    shell: Shell, words: list[str], hint: str
) -> None:
    """A slip gets a hint that works."""
    said = shell("doc", *words)
    assert (said.code, said.out) == (2, "")
    assert hint in said.err


def test_several_names(shell: Shell) -> None:
    """Each gets its page, in the order they were asked for, and none twice."""
    out = shell("doc", "PR402", "git_clone", "PR402").out
    assert out.startswith("PR402: ")
    assert "\n\nmodule git_clone\n" in out
    assert out.count("PR402: ") == 1


@pytest.mark.parametrize("kind", ["module", "plugin", "keyword", "error"])
def test_a_kind_alone_is_its_list(shell: Shell, kind: str) -> None:
    """`pairun doc module` is what `pairun doc modules` is."""
    assert shell("doc", kind).out == shell("doc", f"{kind}s").out


def test_documentation_as_data(shell: Shell) -> None:
    """--json prints the same pages as one document, with a module's arguments as a schema."""
    everything = shell("doc", "--json").data
    assert everything["schema"] == 1
    assert everything["modules"].keys() == CONTENT.modules.keys()
    assert everything["plugins"].keys() == CONTENT.specs.keys()
    assert everything["keywords"].keys() == KEYWORDS.keys()
    assert everything["errors"].keys() == CATALOGUE.keys()
    one = shell("doc", "git_clone", "--json").data
    assert one["modules"]["git_clone"] == everything["modules"]["git_clone"]
    assert one.keys() == {"schema", "modules", "problems"}
    Draft202012Validator.check_schema(one["modules"]["git_clone"]["arguments"])
    assert shell("doc", "plugins", "--json").data["plugins"] == everything["plugins"]


def test_documentation_as_data_of_nothing(shell: Shell) -> None:
    """Standard output carries the document on errors too."""
    said = shell("doc", "git_clon", "--json")
    assert (said.code, said.err) == (2, "")
    assert [p["id"] for p in said.data["problems"]] == ["PR801"]


def test_the_reference_of_commands_is_whole(shell: Shell) -> None:
    """Every command that people type has its section, with every option."""
    page = (shell.project / "docs/reference/commands.md").read_text()
    sections = page.split("\n## pairun ")[1:]
    commands = {s.split("\n", 1)[0]: s for s in sections}
    for command in ("", *shown_commands()):
        section = commands[command or "--dry-run"]
        for action in parser_of(command)._actions:
            if action.help != argparse.SUPPRESS and action.dest != "help":
                assert f"`{', '.join(action.option_strings)}" in section


def test_a_clusters_modules_and_plugins_are_documented(shell: Shell) -> None:
    """``--root`` adds its modules and specs; one with mistakes is an error, not a crash."""
    root = shell.root(
        {
            "plugin_specs/hello.yaml": "summary: Says hello\nparameters: {properties: {a: true}}\n",
            "plugin_specs/broken.yaml": "parameters: {}\nruntime: [{cmd: {argv: [a]}}]\n",
        }
    )
    assert "Says hello" in shell("doc", "hello", "--root", root).out
    assert "Says hello" in shell("doc", "--root", root).out
    said = shell("doc", "broken", "--root", root)
    assert (said.code, sorted(said.ids)) == (1, ["PR205", "PR205"])


def test_a_plugin_folder_is_documented(shell: Shell) -> None:
    """A folder in OpenPAI's form is listed beside the specs, and has a page with its program."""
    root = shell.root(
        {
            "plugins/hello/desc.yaml": "name: hello\ninit-script: init.py\n",
            "plugins/hello/init.py": "",
        }
    )
    summary = "A plugin folder in OpenPAI's form: init runs init.py"
    assert f"  hello             {summary}\n" in shell("doc", "plugins", "--root", root).out
    for words in (["hello"], ["plugin", "hello"]):
        assert shell("doc", *words, "--root", root).out.startswith(f"plugin hello\n  {summary}\n")
    page = shell("doc", "hello", "--root", root, "--json").data["plugins"]["hello"]
    assert page == {"summary": summary, "parameters": {}, "folder": f"{root}/plugins/hello"}
    assert "did you mean 'hello'?" in shell("doc", "helo", "--root", root).err


@pytest.mark.parametrize("name", FORMATS)
def test_a_schema_is_one(shell: Shell, name: str) -> None:
    """Each format has a JSON Schema that the draft's own schema accepts."""
    data = shell("schema", name).data
    Draft202012Validator.check_schema(data)
    assert data["title"]


def errors_of(schema: Any, value: Any) -> list[str]:
    """What an editor would underline."""
    return [e.message for e in Draft202012Validator(schema).iter_errors(value)]


def test_what_is_shipped_fits_the_printed_schemas(shell: Shell) -> None:
    """An editor that uses the schemas underlines nothing in the built-in files."""
    schemas = {n: shell("schema", n).data for n in FORMATS}
    for path in sorted((shell.project / "playbooks").glob("*.yaml")):
        which = "policy" if path.stem == "policy" else "playbook"
        assert errors_of(schemas[which], read_file(str(path), "file").plain()) == []
    for path in sorted((shell.project / "plugin_specs").glob("*.yaml")):
        assert errors_of(schemas["plugin-spec"], read_file(str(path), "file").plain()) == []
    for path in sorted((shell.project / "examples").glob("*.yaml")):
        if "\napiVersion: " in path.read_text():
            continue  # objects of Kubernetes, which carry a job or a Pod's configuration
        job = read_file(str(path), "job", JS).plain()
        if path.stem == "inject-changes":
            assert errors_of(schemas["extras"], job) == []
            continue
        if path.stem == "forbidden":
            assert errors_of(schemas["job"], job)
        else:
            assert errors_of(schemas["job"], job) == []
            assert errors_of(schemas["extras"], job.get("extras", {}).get("pairun", {})) == []


def test_an_editor_underlines_a_modules_arguments(shell: Shell) -> None:
    """The playbook's schema knows every module's arguments and their types."""
    schema = shell("schema", "playbook").data
    task = {"name": "N", "cmd": {"argv": ["a"], "ok_codes": "{{ codes }}"}}
    assert errors_of(schema, {"phase": "init", "tasks": [task]}) == []
    wrongs: list[dict[str, Any]] = [{"argvv": []}, {"argv": "a"}, {"errexit": "yes"}]
    for wrong in wrongs:
        assert errors_of(schema, {"phase": "init", "tasks": [{"name": "N", "cmd": wrong}]})


def test_patches_may_set_back_to_the_default(shell: Shell) -> None:
    """Null is accepted where a patch means the default, and nowhere else."""
    schema = shell("schema", "extras").data
    patch = {
        "patch": "a",
        "retries": None,
        "environment": {"A": None},
        "exit_codes": {"timeout": None},
    }
    assert errors_of(schema, {"init": [patch]}) == []
    playbook = shell("schema", "playbook").data
    task = {"name": "N", "retries": None, "cmd": {"argv": ["a"]}}
    assert errors_of(playbook, {"phase": "init", "tasks": [task]})


def test_help_of_every_command(shell: Shell) -> None:
    """Each command explains itself and exits with 0."""
    listed = shell("--help")
    assert listed.code == 0
    for command in shown_commands():
        assert f"  {command} " in listed.out
        assert shell(command, "--help").code == 0


def test_the_version_names_its_roots(shell: Shell) -> None:
    """The version and the digest of the playbooks it would use, one root per line."""
    root = shell.root({"playbooks/policy.yaml": shell.all_open})
    said = shell.process("--version", env={"PAIRUN_PATH": str(root)})
    first, built_in, cluster = said.out.splitlines()
    assert first.startswith("pairun ")
    assert built_in.startswith("built-in playbooks ")
    assert cluster.startswith("cluster playbooks ")
    assert json.dumps(str(root))[1:-1] in cluster


@pytest.mark.parametrize("argv", [["--nonsense"], ["nonsense"], ["schema", "nonsense"], ["lint"]])
def test_wrong_usage_exits_with_2(shell: Shell, argv: list[str]) -> None:
    """What the command line itself does not allow ends as in every other program."""
    said = shell.process(*argv)
    assert said.code == 2
    assert said.err.splitlines()[-1].startswith("pairun")
    assert "error: " in said.err

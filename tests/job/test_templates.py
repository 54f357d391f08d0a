"""Tags in commands, secrets and plugin parameters."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pairun.errors import Place, Problems, Source
from pairun.job import mustache
from pairun.job.jobfile import read_job
from pairun.job.jsyaml import JS
from pairun.job.model import Job
from pairun.job.parameters import TagScope, render_parameters
from pairun.job.templates import render_secrets, user_command
from pairun.module import Secret, reveal
from pairun.playbook.document.reading import Node, node_of, read_text

PLACE = Place(Source("job.yaml", "job", ""), 1, 1)


def node(value: Any) -> Node:
    """A tree at one place."""
    return node_of(value, PLACE)


def job_of(commands: list[str], **entries: Any) -> Job:
    """A job with these commands and further top-level entries."""
    document = {
        "protocolVersion": 2,
        "name": "job",
        "type": "job",
        "prerequisites": [
            {"name": "image", "type": "dockerimage", "uri": "ubuntu"},
            {"name": "digits", "type": "data", "uri": ["a", "b"], "size": {"mb": 10}},
        ],
        "taskRoles": {
            "worker": {
                "dockerImage": "image",
                "data": "digits",
                "resourcePerInstance": {"cpu": 1, "memoryMB": 1, "gpu": 0},
                "commands": commands,
            }
        },
        **entries,
    }
    text = yaml.safe_dump(document, sort_keys=False)
    job, problems = read_job(read_text(Source("job.yaml", "job", text), JS))
    assert job is not None, list(problems)
    return job


def command(*commands: str, **entries: Any) -> str:
    """The rendered command of a job."""
    job = job_of(list(commands), **entries)
    return user_command(job, job.roles[0])


PARAMETERS = {
    "n": 1.0,
    "t": True,
    "z": None,
    "list": ["x", [1, None], {"k": "deep"}],
    "map": {"a": {"b": "c"}},
    "tag": "<% $parameters.n %>",
    "jinja": "{{ 7*7 }}",
    "text": "abc",
}

# What OpenPAI's REST server makes of a command, with mustache.js 2.3.
COMMANDS = [
    ("no tags", "no tags"),
    ("<% $parameters.n %>|<%$parameters.t%>", "1|true"),
    ("<% $parameters.list %>", "x,1,,[object Object]"),
    ("<% $parameters.map %>", "[object Object]"),
    ("<% $parameters.map.a.b %>", "c"),
    ("<% $parameters.list[1][0] %> <% $parameters.list.2.k %>", "1 deep"),
    ("<% $parameters.list.length %>", "3"),
    ("<% $parameters.z %>", "<% $parameters.z %>"),
    ("<%$parameters.none[0]%>", "<% $parameters.none.0 %>"),
    ("<% $secrets.a[1] %>", "<% $secrets.a.1 %>"),
    ("<% $data.uri[1] %> <% $data.name %> <% $data.size.mb %>", "b digits 10"),
    ("<% $script.name %>", "<% $script.name %>"),
    ("<% $parameters.tag %>", "<% $parameters.n %>"),
    ("<% $parameters.jinja %> {{ 7*7 }}", "{{ 7*7 }} {{ 7*7 }}"),
    ("a<%! comment %>b", "ab"),
    ("a<%& $parameters.n %>b", "ab"),
    ("a<%{ $parameters.n }%>b", "ab"),
    ("a<%# $parameters.t %>inside <% $parameters.n %><%/ $parameters.t %>b", "ab"),
    ("a<%^ x %>inside<%/ x %>b", "ab"),
    ("a\n  <%! alone %>  \nb", "a\nb"),
    ("a\n  <% $parameters.n %>  \nb", "a\n  1  \nb"),
    ("<%=[ ]=%>[$parameters.n] <% $parameters.n %>", "1 <% $parameters.n %>"),
    ("<% %>", "<%  %>"),
    ("\ufeff\u00a0 echo \u3000", "echo"),
]


@pytest.mark.parametrize(("text", "expected"), COMMANDS)
def test_a_command_renders_as_on_the_rest_server(text: str, expected: str) -> None:
    """Only plain names are replaced, and every quirk of the server is kept."""
    assert command(text, parameters=PARAMETERS) == expected


def test_commands_are_trimmed_joined_and_wrapped_by_the_deployment() -> None:
    """The deployment in force goes before and after; the others do not count."""
    deployments = [
        {"name": "a", "taskRoles": {"worker": {"preCommands": ["no"]}}},
        {
            "name": "b",
            "taskRoles": {
                "worker": {"preCommands": [" pre <% $parameters.n %> "], "postCommands": ["post"]}
            },
        },
        {"name": "c", "taskRoles": {"other": {"preCommands": ["no"]}}},
    ]
    shared: dict[str, Any] = {"deployments": deployments, "parameters": PARAMETERS}
    assert command(" a \n", "b", defaults={"deployment": "b"}, **shared) == "pre 1\na\nb\npost"
    assert command("a", defaults={"deployment": "c"}, **shared) == "a"
    assert command("a", **shared) == "a"


@pytest.mark.parametrize(
    "text",
    ["<%", "a <% b", "<%# a %>", "<%/ a %>", "<%# a %><%/ b %>", "<%= a %>", "<%=a=%>", "<%{ a %>"],
)
def test_what_mustache_refuses_is_refused(text: str) -> None:
    """A tag or section that does not end is an error with a position."""
    with pytest.raises(mustache.TagError) as e:
        mustache.parse("echo " + text)
    assert e.value.position >= len("echo ")


pieces = st.sampled_from(
    [
        "<%",
        "%>",
        "<%#",
        "<%/",
        "<%!",
        "<%&",
        "<%{",
        "}%>",
        "<%=",
        "=%>",
        "$parameters.a",
        "$parameters.b[0]",
        "x",
        ".",
        "\n",
    ]
) | st.sampled_from([" ", "\n"])


@given(st.lists(pieces, max_size=15).map("".join))
def test_rendering_ends_in_text_or_a_tag_error(text: str) -> None:
    """No template breaks the renderer."""
    with contextlib.suppress(mustache.TagError):
        mustache.render(text, {"$parameters": {"a": "<% x %>", "b": [1]}})


def test_a_hostile_template_takes_linear_time() -> None:
    """Megabytes of tags without an end, or of spaces in a tag, are read once."""
    for text in (
        "<%x" + " " * 10**6,
        "<% $a" * 10**5,
        "<%" + " " * 10**6 + "x",
        " \n" * 10**5 + "<%!x%>",
    ):
        render_secrets(text, node({"a": "b"}))
        with contextlib.suppress(mustache.TagError):
            mustache.parse(text)


SECRETS = {
    "raw": "a&b<c>\"d'e",
    "five": 5,
    "yes": True,
    "null": None,
    "list": [["deep", "x"], 2],
    "map": {"k": "ü"},
    "nested": "<% $secrets.five %>",
    "my-key": "dash",
    "multi": "a\nb\\n\t{{ 7*7 }}",
}

SECRET_TEXTS = [
    ("<% $secrets.raw %>", SECRETS["raw"]),
    ("p=<%$secrets.raw%>;", f"p={SECRETS['raw']};"),
    ("<%& $secrets.five %><%{ $secrets.five }%>", "55"),
    ("<% $secrets.yes %>|<% $secrets.null %>|", "true||"),
    ("<% $secrets.list[0][1] %> <% $secrets.list.1 %>", "x 2"),
    ("<% $secrets.list %> <% $secrets.map %>", '[["deep", "x"], 2] {"k": "ü"}'),
    ("<% $secrets.nested %>", "<% $secrets.five %>"),
    ("<% $secrets.my-key %>", "dash"),
    ("<% $secrets.multi %>", SECRETS["multi"]),
]


@pytest.mark.parametrize(("text", "expected"), SECRET_TEXTS)
def test_a_secret_goes_into_a_text_as_it_is(text: str, expected: str) -> None:
    """Values are raw, never escaped, never rendered again; the result is secret."""
    rendered = render_secrets(text, node(SECRETS))
    assert rendered == Secret(expected)
    assert expected not in repr(rendered)


LEFT_ALONE = [
    "<%= erb %>",
    "<%! c %>",
    "<%# a %>b<%/ a %>",
    "<% $secrets.none %>",
    "<% $parameters.x %>",
]


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_a_tag_that_nothing_resolves_stays(text: str) -> None:
    """Text that is not ours is not swallowed."""
    assert render_secrets(text, node(SECRETS)) == text


def test_without_secrets_a_text_is_untouched() -> None:
    """A job without secrets keeps its tags."""
    assert render_secrets("<% $secrets.a %>", None) == "<% $secrets.a %>"


@given(st.text())
def test_any_secret_value_comes_out_as_it_went_in(value: str) -> None:
    """No character of a secret is special."""
    assert reveal(render_secrets("[<% $secrets.a %>]", node({"a": value}))) == f"[{value}]"


def rendered(value: Any, **this: Any) -> tuple[Any, Problems]:
    """Parameters after rendering, and what was wrong."""
    scope = TagScope(
        namespaces={
            "$parameters": node(PARAMETERS),
            "$secrets": node(SECRETS),
            "$data": node({"uri": ["u0"]}),
            "$output": None,
        },
        this=lambda: (node(this), node({"inherited": "from below", "own": "hidden"})),
    )
    problems = Problems()
    return render_parameters(node(value), scope, problems).plain(), problems


PARAMETER_VALUES: list[tuple[Any, Any]] = [
    ("plain", "plain"),
    (7, 7),
    ("<% $parameters.n %>", 1.0),
    ("<%$parameters.t%>", True),
    ("<% $parameters.z %>", None),
    ("<% $parameters.map %>", {"a": {"b": "c"}}),
    ("x <% $parameters.n %> <% $parameters.t %> <% $parameters.z %>", "x 1 true "),
    ("<% $data.uri[0] %>", "u0"),
    ({"a": ['it\'s "<% $parameters.text %>"\n\t\\n']}, {"a": ['it\'s "abc"\n\t\\n']}),
    ("<% $parameters.tag %>", "<% $parameters.n %>"),
    ("<% $parameters.jinja %>", "{{ 7*7 }}"),
    ("<%= erb %> <% plain %>", "<%= erb %> <% plain %>"),
    ("<% $secrets.five %>", Secret("5")),
    ("u:<% $secrets.raw %>", Secret(f"u:{SECRETS['raw']}")),
    ("<% $secrets.map %>", {"k": Secret("ü")}),
    ("<% this.parameters.own %> <% this.own %>", "mine mine"),
    ("<% this.inherited %>", "from below"),
]


@pytest.mark.parametrize(("value", "expected"), PARAMETER_VALUES)
def test_parameters_are_rendered_in_the_tree(value: Any, expected: Any) -> None:
    """A whole tag keeps its type, others become text, and no text is parsed again."""
    found, problems = rendered(value, own="mine")
    assert found == expected
    assert type(found) is type(expected)
    assert not problems


UNRESOLVED = [
    ("<% $parameters.txet %>", "did you mean 'text'?"),
    ("a <% $output.uri %>", "this role has no output"),
    ("<% $params.n %>", "did you mean '$parameters'?"),
    ("<% this.nothing %>", "neither"),
    ("<% this.. %>", "neither"),
    ("<% $. %>", "known here"),
]


@pytest.mark.parametrize(("text", "hint"), UNRESOLVED)
def test_a_tag_that_names_nothing_is_an_error_with_a_hint(text: str, hint: str) -> None:
    """The error names the tag and says what would be there."""
    found, problems = rendered({"a": [text]})
    assert found == {"a": [text]}
    (problem,) = problems
    assert problem.id == "PR510"
    assert problem.message.startswith("nothing defines <% ")
    assert hint in (problem.hint or "")


@given(st.text(), st.text())
def test_any_parameter_value_comes_out_as_it_went_in(before: str, value: str) -> None:
    """No character of a value is special, in whatever text it lands."""
    before = before.replace("<", "").replace("%", "")
    scope = TagScope(namespaces={"$parameters": node({"a": value})})
    found = render_parameters(node([f"{before}<% $parameters.a %>!"]), scope, Problems())
    assert found.plain() == [f"{before}{value}!"]

"""What of a text is a secret, by its key and its shape."""

from __future__ import annotations

import pytest

from pairun.errors import Source
from pairun.module import Secret
from pairun.secrets.shapes import (
    is_secret_key,
    logins,
    plain_secrets,
    script_secrets,
    secret_lines,
    with_secrets,
)


@pytest.mark.parametrize(
    "name",
    ["password", "pasword", "passwrd", "Authorization", "Proxy-Authorization", "X-Auth-Token",
     "accessToken", "client_secret", "secert", "Set-Cookie", "api_key", "HF_TOKEN", "apikey"],
)  # fmt: skip
def test_keys_that_mean_a_secret(name: str) -> None:
    """Words for secrets count in every spelling, and when they are nearly written."""
    assert is_secret_key(name)


@pytest.mark.parametrize(
    "name",
    ["username", "registry", "max_tokens", "tokenizer", "key", "password_file", "secrets", "argv",
     "taken", "section", "", "--", "dest", "author"],
)  # fmt: skip
def test_keys_that_mean_none(name: str) -> None:
    """What only resembles such a word is shown."""
    assert not is_secret_key(name)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("x http://alice:pa55@host/a y ftp://b:c3c3@h", {"pa55", "c3c3"}),
        ("http://a:p%40ss@h", {"p%40ss", "p@ss"}),
        ("http://a:p@ss@h/x", {"p@ss"}),
        ("https://ghp_0123456789abcdef@h/x", {"ghp_0123456789abcdef"}),
        ("ssh://git@h/x https://alice@h", set()),
        ("https://a:$TOKEN@h https://a:${T}@h https://a:<% $secrets.t %>@h", set()),
        ("https://a:{{ secrets.t }}@h http://h:80/a@b a:b@c", set()),
    ],
)
def test_logins_in_addresses(text: str, found: set[str]) -> None:
    """The password before the @ is found, as written and as decoded; tags and variables are not."""
    assert set(logins(text)) == found


def test_what_opens_a_store_of_azure() -> None:
    """An account's key by its shape, the signature of an address as written and as decoded."""
    key = "k" * 86 + "=="
    assert list(plain_secrets("key", key)) == [key]
    url = "https://a.blob.core.windows.net/c?sv=1&sig=aa%2Fbb%3D&se=2"
    assert set(plain_secrets("sas_url", url)) == {"aa%2Fbb%3D", "aa/bb="}
    assert not list(plain_secrets("x", "https://h/?sig={{ secrets.s }} ?sig=$SIG design=1"))


def test_values_under_secret_keys() -> None:
    """What an expression or a tag gives is decided elsewhere; a header's scheme is no secret."""
    assert set(plain_secrets("Authorization", "Bearer abcd")) == {"Bearer abcd", "abcd"}
    assert not list(plain_secrets("token", "{{ secrets.x }}"))
    assert not list(plain_secrets("token", "<% $secrets.x %>"))
    assert not list(plain_secrets("token", 5))
    assert not list(plain_secrets("dest", "/x"))


def test_data_with_its_secrets_apart() -> None:
    """Only what is a secret becomes one."""
    given = {"username": "a", "password": "b", "files": [{"url": "http://a:bbbb@h"}], "n": None}
    made = with_secrets(given)
    assert made == {
        "username": "a", "password": Secret("b"), "n": None,
        "files": [{"url": Secret("http://a:bbbb@h")}],
    }  # fmt: skip


@pytest.mark.parametrize(
    "line", ["pasword: abc", '"token": "abc', "- url: http://a:bcd@h/x", "  secret: x"]
)  # fmt: skip
def test_a_line_of_that_shape_is_hidden(line: str) -> None:
    """Also where the text is no YAML, a line that holds a password is in no excerpt."""
    assert Source("f", "job", line).line(1) == ""
    assert Source("f", "job", "token: '{{ secrets.x }}'").line(1) != ""


@pytest.mark.parametrize(
    "line",
    ["password: *abc", "password: !abc x", "password: &abc", "token: [abc", "{password: {abc",
     "x: {user: a, pasword: abc}", "dbpassword: abc", "accessToken: abc", "api_key: abc"],
)  # fmt: skip
def test_a_value_that_yaml_reads_otherwise_is_hidden(line: str) -> None:
    """A password may begin with a character that YAML uses itself."""
    assert secret_lines(f"a: 1\n{line}\nb: 2") == {2}


def test_the_lines_of_a_block_are_hidden() -> None:
    """A value under ``|`` ends where the indentation does."""
    text = "a:\n  password: |\n    abc\n\n    def\n  b: 1\nc: 2"
    assert secret_lines(text) == {3, 4, 5}


@pytest.mark.parametrize("line", ["token: {{ x }}", "token: '<% $secrets.x %>'", "token: $X", "token: # x",
                                  "password:", "tokens: 5", "tokenizer: x", "argv: [a]"])  # fmt: skip
def test_a_line_without_a_secret_is_shown(line: str) -> None:
    """Expressions, tags, variables and empty values are no secrets."""
    assert not secret_lines(line)


@pytest.mark.parametrize("key", ["secret", "Secrets", "secerts"])
def test_a_misspelt_block_of_secrets_is_hidden(key: str) -> None:
    """What was meant as the job's secrets is in no excerpt, whatever stands in it."""
    source = Source("f", "job", f"name: a\n{key}:\n  x: abc\ntype: job\nsteps:\n  x: shown")
    assert [bool(source.line(n)) for n in range(1, 7)] == [True, False, False, True, True, True]


def test_an_endless_word_is_read_once() -> None:
    """A text of one word takes no longer than its length: a search per letter would never end."""
    assert secret_lines("a" * 5_000_000) == set()


@pytest.mark.parametrize(
    ("script", "secrets"),
    [
        ("mount -t cifs -o username=u,password=p4ss,vers=3.0 //s/x /m", {"p4ss"}),
        ("export API_TOKEN='abc def'; TOKEN=$OTHER run", {"abc"}),
        ("curl http://user:pw@host/?sig=xyz", {"pw", "xyz"}),
        ("python train.py --password=one --epochs=3 -DKEY=v", {"one"}),
        ("password=\nnext", set()),
        ("echo no secret here; x=1", set()),
        ("max_token=2048 --max-new-token=64 password=2048", {"2048"}),
        ("config: max_token=2048", set()),
    ],
)
def test_secrets_of_a_script(script: str, secrets: set[str]) -> None:
    """Options and variables by their names, logins and signatures by their shape."""
    assert set(script_secrets(script)) == secrets

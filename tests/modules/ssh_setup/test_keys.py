"""The public keys of people."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.modules.ssh_setup.conftest import Place, key, own_file


def test_the_keys_of_people(bundled: Place) -> None:
    """Saved keys, the parameter's, several in one text: each once, in order, newline-safe."""
    saved = [{"title": "a", "value": key(1, comment="a") + "\r\n" + key(2)}, {"value": None}]
    text = f"{key(3)} me@home\r{key(1)}\n\n# note\n{key(4)} {key(5)} two\n"
    userssh = {"type": "custom", "value": text}
    bundled.run({"userssh": userssh, "saved_keys": saved})
    assert bundled.keys() == [key(1, comment="a"), key(2), f"{key(3)} me@home", key(4),
                              f"{key(5)} two"]  # fmt: skip
    assert not (bundled.folder / "id").exists()


def test_a_file_of_the_mounted_secret(bundled: Place) -> None:
    """The type `system` names a file beside the job's pair, and no other file."""
    folder = bundled.harness.pai_dir / "ssh-secret"
    folder.mkdir()
    (folder / "team").write_text(key(7))
    bundled.run({"userssh": {"type": "system", "value": "../../team"}})
    assert bundled.keys() == [key(7)]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (f'command="rm -rf /" {key()}', "has options in front of the key"),
        (f"no-pty,{key()}", "is not a public key"),
        ("ssh-rsa AAAA", "begins as a key of type ssh-rsa"),
        (key().replace("ssh-ed25519", "ssh-rsa"), "begins as a key of type ssh-rsa"),
        (key(kind="ssh-dss"), "is not a public key"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0\n", "is part of a private key"),
    ],
)
def test_what_is_no_key(line: str, says: str) -> None:
    """It is named by its line, never shown."""
    complaints: list[str] = []
    found = list(own_file("keys").public_keys(f"\n{line}", "text", complaints))
    assert found == []
    assert len(complaints) == 1
    assert complaints[0].startswith("text, line 2: it ")
    assert says in complaints[0]
    assert "rm" not in complaints[0].replace("from", "")
    assert "c2VjcmV0" not in complaints[0]


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    """Whatever it is, only keys come out, each on one line."""
    for name, line in own_file("keys").public_keys(f"{text}\n{key()}\n", "text", []):
        assert line.isprintable()
        assert line.startswith(name)

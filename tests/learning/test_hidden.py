"""Secrets in other people's logs are masked before they are shown."""

from __future__ import annotations

import pytest

from pairun.learning.hidden import without_secrets
from pairun.secrets.vault import Vault


@pytest.mark.parametrize(
    "text",
    [
        "clone of https://bob:S3cretWord@git.example.com/a failed",
        "failed: password=S3cretWord",
        "failed with api_key: 'S3cretWord'",
        "{'Authorization': 'Bearer S3cretWord123'} is refused",
        "the token hf_S3cretWordS3cretWord is invalid",
        "refused eyJS3cretWord.S3cretWord.S3cretWord",
        "the value S3cretWord of this process",
    ],
)
def test_a_secret_is_masked(text: str) -> None:
    """By its key, its shape, or because the process hides it."""
    assert "S3cretWord" not in without_secrets(text, Vault(["S3cretWord"][: "process" in text]))


def test_other_words_stay() -> None:
    """A line without secrets is not changed."""
    text = "unexpected token at line 3: key error in tokens of 12 files"
    assert without_secrets(text, Vault()) == text

"""The words of a message: values do not count."""

from __future__ import annotations

from pairun.diagnose.wording import BITS, features_of, telling_words, words_of


def test_values_do_not_matter() -> None:
    """Numbers, cases, folders and addresses are no features."""
    one = features_of("Cannot read /a/b/data: 17 at 0x7ffe01")
    assert one == features_of("cannot read /c/data: 4 at 0x55aa")
    assert features_of("17: 0x55aabbcc") == ()
    assert max(one) < 1 << BITS


def test_words_of_names_are_apart() -> None:
    """Names in CamelCase are several words; common words tell nothing."""
    assert words_of("XLARuntimeError: can't") == ["xla", "runtime", "error", "cant"]
    assert telling_words("the lease of the volume") == ["lease", "volume"]

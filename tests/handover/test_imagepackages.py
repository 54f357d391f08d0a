"""Debian's packages in an image without a package manager."""

from __future__ import annotations

import pathlib

from pairun.handover.imagepackages import packages_of_image


def test_packages_that_are_described(tmp_path: pathlib.Path) -> None:
    """Each file of the folder is a package; lines that go on are no fields."""
    folder = tmp_path / "var/lib/dpkg/status.d"
    folder.mkdir(parents=True)
    text = "Package: git\nVersion: 1:2.39\nArchitecture: arm64\nDescription: fast\n very: fast\n"
    (folder / "git").write_text(text)
    (package,) = packages_of_image(str(tmp_path))
    assert package["purl"] == "pkg:deb/debian/git@1:2.39?arch=arm64"


def test_elsewhere(tmp_path: pathlib.Path) -> None:
    """Where no package is described there is none."""
    assert packages_of_image(str(tmp_path)) == []

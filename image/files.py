"""Makes the image's file systems of what was downloaded; root.sh calls it.

It runs no program of the target, whose architecture may be another one. The standard library and
the packages of others are there as compiled code alone; pairun's own texts stay beside it.
"""

from __future__ import annotations

import argparse
import fnmatch
import glob
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence

from compiling import (
    compile_alone,
    compile_beside,
    compile_single_files,
    files_below,
    put_into_archive,
    write,
)

HERE = os.path.dirname(os.path.abspath(__file__))
MERGED = ("bin", "sbin", "lib", "lib64")
"""Links to the folders of the same name in /usr, as Debian has them."""

NOT_NEEDED = (
    "libmvec.so.*",
    "libbrotlienc*",
    "libexpatw*",
    "libnsl.so.*",
    "libtic.so.*",
    "libnss_compat*",
    "libnss_hesiod*",
    "libmemusage*",
    "libpcprofile*",
    "libthread_db*",
    "libc_malloc_debug*",
    "engines-3",
    "ossl-modules",
)
"""Libraries that nothing here loads."""

LIBRARIES = ("lib/*/*.so*", "usr/lib/*/*.so*")
"""What a package brings without patterns of its own."""

STANDARD_LIBRARY = "usr/lib/python3.11"
SITE = "opt/pairun/lib/python3.11/site-packages"

LEFT_OUT = (
    "test", "idlelib", "tkinter", "turtledemo", "turtle.*", "lib2to3", "pydoc_data", "ensurepip", "config-*",
    "lib-dynload/_sqlite3.*", "lib-dynload/_tkinter.*", "lib-dynload/_curses*", "lib-dynload/readline.*",
    "lib-dynload/_dbm.*", "lib-dynload/nis.*", "lib-dynload/_test*", "lib-dynload/_xxtest*",
    "lib-dynload/xxlimited*", "lib-dynload/_ctypes_test.*", "lib-dynload/_codecs_*", "distutils",
    "_pydecimal.*", "_pyio.*", "unittest", "doctest.*", "encodings/mac_*", "encodings/big5*", "encodings/gb*",
    "encodings/euc_*", "encodings/shift_*", "encodings/iso2022*", "encodings/cp9*", "encodings/cp8[67]*",
)  # fmt: skip
"""What of the standard library is for tests, for windows, or needs a library that is not here."""

USERS = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n",
    "etc/group": "root:x:0:\ntty:x:5:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
COMMAND = """\
#!/opt/pairun/bin/python3
from pairun.__main__ import program

program()
"""
ENVIRONMENT = "home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.11.2\n"
TESTS = ("jsonschema/benchmarks", "jsonschema/tests", "referencing/tests")
"""Tests of packages of others."""

KEPT_DOCSTRINGS = {"kubernetes": (":return:", ":param bool follow:")}
"""Beginnings of lines that a package reads in its own docstrings: kubernetes.watch takes types from them."""

IN_ARCHIVES = (
    "dateutil", "kubernetes", "markdown_it", "oauthlib", "pygments", "tzdata", "websocket",
)  # fmt: skip
"""Packages of many files that few commands import: each is read from a zip file."""

STANDARD_IN_ARCHIVES = ("asyncio", "wsgiref", "xml", "xmlrpc")
"""The same of the standard library."""


def main() -> None:
    """Make the two folders."""
    parser = argparse.ArgumentParser()
    for name in ("packages", "machine", "output"):
        parser.add_argument(f"--{name}", required=True)
    args = parser.parse_args()
    system = os.path.join(args.output, "system")
    pairun = os.path.join(args.output, "pairun")
    for name in MERGED:
        os.makedirs(os.path.join(system, "usr", name))
        os.symlink(f"usr/{name}", os.path.join(system, name))
    for name, patterns in read_packages(os.path.join(HERE, "packages.txt")).items():
        (file,) = glob.glob(os.path.join(args.packages, f"{name}_*.deb"))
        unpack(file, name, patterns, system)
    finish_system(system)
    finish_pairun(pairun)
    check_libraries(system, pairun)


def read_packages(path: str) -> dict[str, list[str]]:
    """The patterns of each package that packages.txt names, sorted by name."""
    patterns: dict[str, list[str]] = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            words = line.partition("#")[0].split()
            if words:
                patterns.setdefault(words[0], []).extend(words[1:])
    return {name: patterns[name] or list(LIBRARIES) for name in sorted(patterns)}


def unpack(file: str, name: str, patterns: Sequence[str], root: str) -> None:
    """Unpack a package's chosen files, its copyright, and its description for scanners.

    Args:
        file: the package (deb(5)).
        name: its name.
        patterns: of its files; each must match one.
        root: the folder to unpack into.
    """
    listed = subprocess.run(["dpkg-deb", "--fsys-tarfile", file], check=True, capture_output=True)
    used = set()
    with tarfile.open(fileobj=io.BytesIO(listed.stdout)) as archive:
        for member in archive:
            path = member.name.removeprefix("./")
            matching = [p for p in patterns if fnmatch.fnmatchcase(path, p)]
            if not member.isdir() and (matching or path == f"usr/share/doc/{name}/copyright"):
                used.update(matching)
                extract(archive, member, path, root)
    if unused := set(patterns) - used - set(LIBRARIES) - FOR_ONE_MACHINE:
        sys.exit(f"image: {name} has no {', '.join(sorted(unused))}")
    description = subprocess.run(["dpkg-deb", "-f", file], check=True, capture_output=True)
    # where scanners look in an image without dpkg
    write(os.path.join(root, "var/lib/dpkg/status.d", name), description.stdout)


FOR_ONE_MACHINE = {"lib64/*", "lib/ld-linux-*"}
"""Where the loader stands on amd64, and on arm64."""


def extract(archive: tarfile.TarFile, member: tarfile.TarInfo, path: str, root: str) -> None:
    """Unpack a file or a link, through the links of `MERGED`."""
    target = os.path.join(root, path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if member.issym():
        os.symlink(member.linkname, target)
    elif member.islnk():
        os.link(os.path.join(root, member.linkname.removeprefix("./")), target)
    elif (content := archive.extractfile(member)) is not None:
        write(target, content.read(), member.mode & 0o755)


# --- Debian's part ---


def finish_system(root: str) -> None:
    """Add names of programs, users, certificates, and the folders that programs expect."""
    with open(os.path.join(HERE, "applets.txt"), encoding="utf-8") as f:
        applets = f.read().split()
    programs = os.path.join(root, "usr/bin")
    os.symlink("bash", os.path.join(programs, "sh"))
    os.symlink("../../bin/git", os.path.join(root, "usr/lib/git-core/git"))
    with open(os.path.join(HERE, "envsubst.py"), "rb") as script:
        write(os.path.join(root, "usr/lib/git-core/git-sh-i18n--envsubst"), script.read(), 0o755)
    for name in applets:
        if not os.path.lexists(os.path.join(programs, name)):
            os.symlink("busybox", os.path.join(programs, name))
    for path, text in USERS.items():
        write(os.path.join(root, path), text.encode())
    os.symlink("../usr/lib/os-release", os.path.join(root, "etc/os-release"))
    certificates(root)
    for name, mode in (("tmp", 0o1777), ("var/tmp", 0o1777), ("root", 0o700), ("run", 0o755),
                       ("proc", 0o755), ("sys", 0o755), ("dev", 0o755)):  # fmt: skip
        os.makedirs(os.path.join(root, name), exist_ok=True)
        os.chmod(os.path.join(root, name), mode)
    for pattern in NOT_NEEDED:
        remove(os.path.join(root, "usr/lib/*", pattern))
    library = os.path.join(root, STANDARD_LIBRARY)
    for pattern in LEFT_OUT:
        remove(os.path.join(library, pattern))
    for name in STANDARD_IN_ARCHIVES:
        put_into_archive(library, name, f"/{STANDARD_LIBRARY}")
    compile_alone(library, f"/{STANDARD_LIBRARY}")


def remove(pattern: str) -> None:
    """Remove the files and folders that a pattern names."""
    for path in glob.glob(pattern):
        shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)


def certificates(root: str) -> None:
    """The authorities as one file, where OpenSSL, GnuTLS and Go look for them."""
    folder = os.path.join(root, "usr/share/ca-certificates/mozilla")
    texts = []
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as f:
            texts.append(f.read())
    shutil.rmtree(os.path.dirname(folder))
    write(os.path.join(root, "etc/ssl/certs/ca-certificates.crt"), b"".join(texts))
    os.makedirs(os.path.join(root, "usr/lib/ssl"))
    os.symlink("/etc/ssl/certs", os.path.join(root, "usr/lib/ssl/certs"))
    os.symlink("certs/ca-certificates.crt", os.path.join(root, "etc/ssl/cert.pem"))
    os.symlink("/etc/ssl/cert.pem", os.path.join(root, "usr/lib/ssl/cert.pem"))


# --- pairun's part ---


def finish_pairun(root: str) -> None:
    """Add the environment's own files and the folders of operators, and compile."""
    home, site = os.path.join(root, "opt/pairun"), os.path.join(root, SITE)
    write(os.path.join(home, "pyvenv.cfg"), ENVIRONMENT.encode())
    write(os.path.join(home, "bin/pairun"), COMMAND.encode(), 0o755)
    for name in ("python", "python3", "python3.11"):
        os.symlink("/usr/bin/python3.11", os.path.join(home, "bin", name))
    # An operator's own init programs: the volume at /usr/local/pai does not hide this folder.
    os.makedirs(os.path.join(home, "init.d"))
    for name in ("usr/local/pai", "user/local/pai"):
        os.makedirs(os.path.join(root, name))
        os.symlink("/opt/pairun/init.d", os.path.join(root, name, "init.d"))
    for name in TESTS:
        remove(os.path.join(site, name))
    # What colours the texts of programming languages, which pairun does not do.
    remove(os.path.join(site, "pygments/lexers/[a-z]*.py"))
    for name in IN_ARCHIVES:
        put_into_archive(site, name, f"/{SITE}", KEPT_DOCSTRINGS.get(name, ()))
    for name in sorted(os.listdir(site)):
        path = os.path.join(site, name)
        if name == "pairun":
            compile_beside(path, f"/{SITE}/pairun")
        elif not name.endswith(".dist-info") and os.path.isdir(path):
            compile_alone(path, f"/{SITE}/{name}")
    compile_single_files(site, f"/{SITE}")


# --- what everything needs ---


def check_libraries(*roots: str) -> None:
    """Fail if a program or a library needs a library that is not in the image."""
    every = [p for root in roots for p in files_below(root)]
    have = {os.path.basename(p) for p in every}
    paths = [p for p in every if not os.path.islink(p)]
    missing = {
        f"{path} needs {name}"
        for path in paths
        if is_elf(path)
        for name in needed_by(path)
        if name not in have
    }
    if missing:
        sys.exit("image: " + "; ".join(sorted(missing)))


def is_elf(path: str) -> bool:
    """Whether a file is a program or a library."""
    with open(path, "rb") as f:
        return f.read(4) == b"\x7fELF"


def needed_by(path: str) -> list[str]:
    """The libraries that a program or a library names (elf(5), DT_NEEDED)."""
    done = subprocess.run(["readelf", "-d", path], check=True, capture_output=True, text=True)
    return re.findall(r"\(NEEDED\).*\[(.+)\]", done.stdout)


if __name__ == "__main__":
    main()

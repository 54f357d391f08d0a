"""What the program itself can do, wherever it runs."""

from __future__ import annotations

import fnmatch
import json
import os
import pathlib
import re
import signal
import ssl
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Protocol

import pytest

ROOT = pathlib.Path(__file__).parents[2]
MAX_BYTES = 20_000_000
ALL_MODULES = """\
import importlib, json, sys
absent = []
for name in sorted(sys.stdlib_module_names):
    try:
        importlib.import_module(name)
    except ImportError as e:
        absent.append(name)
print("absent", json.dumps(absent))
"""
MOUNT = """\
import os
from pairun.base import system
os.mkdir(TARGET)
system.mount("none", TARGET, "tmpfs", 0, "size=64k,mode=0700")
print("mounted", os.path.ismount(TARGET), os.statvfs(TARGET).f_blocks * 4)
system.unmount(TARGET)
print("unmounted", not os.path.ismount(TARGET))
for call in (
    lambda: system.mount("none", TARGET + "/no", "tmpfs", 0, None),
    lambda: system.unmount(TARGET + "/no"),
    lambda: system.mount("none", TARGET, "nosuchfs", 0, None),
):
    try:
        call()
    except OSError as e:
        print("refused", e.errno, e.filename)
system.prctl(system.PR_SET_CHILD_SUBREAPER, 1)
system.prctl(system.PR_SET_PDEATHSIG, 0)
"""


class _Volume(Protocol):
    path: pathlib.Path
    folder: pathlib.Path

    def prepare(self, *commands: str, runtime: str = "", uid: int = 0) -> None: ...


class _Running(Protocol):
    text: str
    lines: list[str]

    def end(self) -> int: ...


Start = Callable[..., _Running]


def run(volume: _Volume, start: Start, code: str, *wrap: str, **env: str) -> list[str]:
    """Run a piece of Python as a task of the bundle on this machine; what it printed."""
    task = {"append": None, "id": "look", "name": "Look", "python": {"code": code}}
    volume.prepare(runtime=f"runtime: {json.dumps([task])}\n")
    running = start(
        *wrap, volume.path / "runtime",
        env={"PATH": "/usr/bin:/bin", "PAIRUN_PAI_DIR": str(volume.path), **env},
    )  # fmt: skip
    assert running.end() == 0, running.text
    return [x.partition("| ")[2] for x in running.lines if re.match(r"\s*look \| ", x)]


def test_the_size(bundle: pathlib.Path) -> None:
    """It is one static program of less than 20 MB."""
    assert bundle.stat().st_size <= MAX_BYTES
    described = subprocess.run(["readelf", "-ld", bundle], capture_output=True, text=True)
    assert "INTERP" not in described.stdout
    assert "NEEDED" not in described.stdout


def test_no_paths_of_this_machine(bundle: pathlib.Path) -> None:
    """Nothing in it tells where it was built."""
    cache = os.environ.get("PAIRUN_BUNDLE_CACHE", str(ROOT / "build" / "bundle-cache"))
    data = bundle.read_bytes()
    assert cache.encode() not in data
    assert str(ROOT).encode() not in data


def test_what_it_is_made_of(bundle: pathlib.Path) -> None:
    """It prints each package that is linked into it, in the version of the lock."""
    done = subprocess.run([bundle, "--version"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    parts = dict(line.split() for line in done.stdout.splitlines()[2:])
    assert {"musl", "zlib", "bzip2", "xz-utils", "jinja2", "requests"} <= parts.keys()
    lock = (ROOT / "bundle" / "sources.lock").read_text()
    for name in ("python3.11", "openssl"):
        assert f"{name} {parts[name]} " in lock
    assert "rclone" not in parts


def test_an_empty_root(volume: _Volume, start: Start) -> None:
    """It needs nothing but /dev/null: no /proc, no /tmp, no library and no passwd file."""
    task = {"append": None, "id": "look", "name": "Look",
            "python": {"code": "import os; print(sorted(os.listdir('/')), os.getpid() > 1)"}}  # fmt: skip
    volume.prepare(runtime=f"runtime: {json.dumps([task])}\n")
    root = volume.folder / "root"
    place = root / str(volume.path)[1:]
    place.parent.mkdir(parents=True)
    (root / "dev").mkdir()
    os.mknod(root / "dev" / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    volume.path.rename(place)
    running = start(
        "unshare", "--pid", "--fork", "--kill-child", "/usr/sbin/chroot", root, volume.path / "runtime",
        env={"PATH": "/bin", "PAIRUN_PAI_DIR": str(volume.path)},
    )  # fmt: skip
    assert running.end() == 127, running.text
    assert f"look | {sorted(['dev', volume.path.parts[1]])} True" in running.text
    assert "there is no bash and no sh in PATH" in running.text


def test_the_standard_library(volume: _Volume, start: Start) -> None:
    """Every module of it can be imported but those that the list says are left out."""
    text = (ROOT / "bundle" / "left_out.txt").read_text()
    patterns = [word for line in text.splitlines() for word in line.partition("#")[0].split()]
    script = (ROOT / "bundle" / "cpython.sh").read_text()
    parts = re.search(r'^LEFT_OUT="([^"]+)"', script, re.MULTILINE)
    assert parts is not None
    patterns += parts[1].split()
    found = next(x for x in run(volume, start, ALL_MODULES) if x.startswith("absent "))
    absent = json.loads(found.removeprefix("absent "))
    unexpected = {n for n in absent if not any(fnmatch.fnmatchcase(n, p) for p in patterns)}
    # of other systems
    assert unexpected <= {"_msi", "_overlapped", "_scproxy", "_winapi", "msvcrt", "nt", "winsound"}
    assert {"ctypes", "sqlite3", "tkinter"} <= set(absent)


def test_modules_that_are_folders(volume: _Volume, start: Start) -> None:
    """A built-in one is frozen with all its files; another one does not see them."""
    code = (
        "import importlib, pairun_modules.download, pairun_modules.mount_storage.kernel as kernel\n"
        "print(pairun_modules.download.Download.__name__, kernel.mount_remote.__name__)\n"
        "print(pairun_modules.download.__spec__.origin)\n"
        "try: importlib.import_module('pairun_modules.python.items')\n"
        "except ModuleNotFoundError as e: print(e)\n"
    )
    assert run(volume, start, code) == [
        "Download mount_remote",
        "frozen",
        "the module python has no file items.py",
    ]


def test_a_deep_recursion_in_a_thread(volume: _Volume, start: Start) -> None:
    """A thread's stack is as large as elsewhere: what recurses ends in an error, not in a crash."""
    code = (
        "import threading\n"
        "def deep(n): return max([n], key=lambda x: deep(x + 1))\n"
        "def work():\n"
        "    try: deep(0)\n"
        "    except RecursionError: print('recursion error')\n"
        "t = threading.Thread(target=work); t.start(); t.join()\n"
    )
    assert run(volume, start, code) == ["recursion error"]


def test_a_trace(volume: _Volume, start: Start) -> None:
    """A trace names files and lines although there are no files."""
    code = (
        "import json, traceback\n"
        "try: json.loads('nonsense')\n"
        "except ValueError: print(traceback.format_exc().replace(chr(10), ' '))\n"
    )
    printed = " ".join(run(volume, start, code))
    assert re.search(r'File "<json/decoder\.py>", line \d\d+, in raw_decode', printed), printed


@pytest.mark.parametrize("kind", ["bundle", "python"])
def test_mounting(volume: _Volume, start: Start, kind: str) -> None:
    """Mounting needs no helper, and a refusal is an error with its number; so with any Python."""
    target = volume.folder / "mounted"
    code = f"TARGET = {str(target)!r}\n{MOUNT}"
    wrap = ("unshare", "--mount")
    if kind == "bundle":
        printed = run(volume, start, code, *wrap)
    else:
        running = start(*wrap, sys.executable, "-c", code, env={"PYTHONPATH": str(ROOT)})
        assert running.end() == 0, running.text
        printed = running.lines
    assert printed == [
        "mounted True 64", "unmounted True", f"refused 2 {target}/no", f"refused 2 {target}/no",
        f"refused 19 {target}",
    ]  # fmt: skip


class _Hello(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def https(tmp_path: pathlib.Path) -> Iterator[tuple[str, pathlib.Path]]:
    """A server with a certificate of its own authority: its address, and the certificate."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key,
         "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    server = HTTPServer(("127.0.0.1", 0), _Hello)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"https://127.0.0.1:{server.server_port}/", certificate
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_certificate_that_a_variable_names(
    volume: _Volume, start: Start, https: tuple[str, pathlib.Path]
) -> None:
    """TLS is verified, with the authorities that SSL_CERT_FILE names."""
    url, certificate = https
    code = f"print(ctx.fetch({url!r}).body)"
    assert run(volume, start, code, SSL_CERT_FILE=str(certificate)) == ["b'hello'"]


def test_certificates_that_init_left(
    volume: _Volume, start: Start, https: tuple[str, pathlib.Path]
) -> None:
    """In an image without any authorities those that init left on the volume count."""
    url, certificate = https
    handed_over = volume.path / "runtime.d" / "ca-certificates.crt"
    code = (
        "import os\n"
        f"def ask(): return ctx.fetch({url!r}).body\n"
        "try: ask()\n"
        "except Exception as e: print('without', 'certificate' in str(e))\n"
        f"open({str(handed_over)!r}, 'wb').write(open({str(certificate)!r}, 'rb').read())\n"
        "print('with', ask())\n"
    )
    hide = 'mount -t tmpfs none /etc/ssl; mount -t tmpfs none /etc/pki 2>/dev/null; exec "$0"'
    printed = run(volume, start, code, "unshare", "--mount", "sh", "-c", hide)
    assert printed == ["without True", "with b'hello'"]


def test_a_stop_at_the_first_moment(volume: _Volume) -> None:
    """As PID 1 it is told to stop while it still starts, and does not forget it."""
    volume.prepare("sleep 30")
    program = str(volume.path / "runtime")
    env = {"PATH": "/usr/bin:/bin", "PAIRUN_PAI_DIR": str(volume.path)}
    namespace = ["unshare", "--pid", "--fork", "--kill-child"]
    for _ in range(5):
        with subprocess.Popen(
            [*namespace, program], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
            while not (pid := children.read_text().strip()) or not _holds_stops(pid, program):
                assert process.poll() is None
            os.kill(int(pid), signal.SIGTERM)
            assert process.wait(timeout=20) == 143


def _holds_stops(pid: str, program: str) -> bool:
    """Whether a process has blocked SIGTERM, which is the first thing that the program does."""
    if os.readlink(f"/proc/{pid}/exe") != program:
        return False
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"^SigBlk:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return found is not None and bool(int(found[1], 16) >> (signal.SIGTERM - 1) & 1)

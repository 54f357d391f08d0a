"""A real API server that is killed and started again while clients with few rights ask it."""

from __future__ import annotations

import contextlib
import socket
import ssl
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.request import urlopen

import pytest

from pairun.base.refusals import Refusals
from pairun.engines.kubernetes.apierrors import ClusterRefusal, Patience, Unreachable
from pairun.engines.kubernetes.kubeconfig import Access, connect
from pairun.module import Permanent, TimedOut, Transient
from pairun.net.apiserver import ApiServer
from pairun.secrets.vault import Vault
from tests.node.api import Api

CLIENTS = 12
OTHER_BINDINGS = 300


@pytest.fixture
def namespace(api_server: Mapping[str, str]) -> str:
    """A namespace in which the limited account may list Pods, among many other RoleBindings."""
    api = Api(api_server["LAB_API_URL"], api_server["LAB_API_CA"], api_server["LAB_ADMIN_TOKEN"])
    name = f"restart-{uuid.uuid4().hex[:8]}"
    api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{name}"
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]
    api.create(f"{rbac}/roles", {"metadata": {"name": "reader"}, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User"}
    for number in range(OTHER_BINDINGS):
        subjects = [{**user, "name": f"user-{number}-{n}"} for n in range(20)]
        bound = {"metadata": {"name": f"other-{number}"}, "roleRef": role, "subjects": subjects}
        api.create(f"{rbac}/rolebindings", bound)
    subjects = [{**user, "name": "limited"}]
    bound = {"metadata": {"name": "limited"}, "roleRef": role, "subjects": subjects}
    api.create(f"{rbac}/rolebindings", bound)
    return name


class Second:
    """A second API server over the same data, which a test may kill."""

    def __init__(self, first: Mapping[str, str], folder: Path) -> None:
        port = f"--secure-port={first['LAB_API_URL'].rpartition(':')[2]}"
        commands = (_command(proc) for proc in Path("/proc").glob("[0-9]*"))
        [argv] = [a for a in commands if a[0].endswith("kube-apiserver") and port in a]
        with socket.create_server(("127.0.0.1", 0)) as free:
            number = free.getsockname()[1]
        self._argv = [f"--secure-port={number}" if arg == port else arg for arg in argv]
        self._argv += ["--endpoint-reconciler-type=none"]
        self._log = folder / "apiserver.log"
        self.url = f"https://127.0.0.1:{number}"
        self.kubeconfig = str(folder / "kubeconfig")
        given = Path(first["LAB_LIMITED_KUBECONFIG"]).read_text()
        Path(self.kubeconfig).write_text(given.replace(first["LAB_API_URL"], self.url))
        self.start()

    def start(self) -> None:
        """Start it."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._argv, stdout=log, stderr=log)

    def kill(self) -> None:
        """Kill it, and wait for its end."""
        self._process.kill()
        self._process.wait()


def _command(proc: Path) -> list[str]:
    try:
        return (proc / "cmdline").read_text(errors="replace").rstrip("\0").split("\0")
    except OSError:  # it has ended
        return [""]


@pytest.fixture
def second(api_server: Mapping[str, str], tmp_path: Path) -> Iterator[Second]:
    """A second API server, as soon as it is ready."""
    made = Second(api_server, tmp_path)
    authority = ssl.create_default_context(cafile=api_server["LAB_API_CA"])
    end = time.monotonic() + 90
    try:
        while True:
            with contextlib.suppress(OSError):
                urlopen(f"{made.url}/readyz", context=authority, timeout=5).close()
                break
            assert time.monotonic() < end, made._log.read_text()[-2000:]
            time.sleep(0.2)
        yield made
    finally:
        made.kill()


class Client(threading.Thread):
    """Asks until it has got an answer after an outage; keeps what ended it otherwise."""

    def __init__(self, ask: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self._ask = ask
        self.error: Exception | None = None
        self.outages = self.refused = 0
        self.asked = threading.Event()

    def run(self) -> None:
        """Ask."""
        answers = 0
        while answers < 20:
            try:
                self._ask()
                self.asked.set()
                answers += bool(self.outages)
            except (Transient, TimedOut, Unreachable) as e:
                self.outages += 1
                self.refused += "may be temporary" in str(e)
            except ClusterRefusal as e:
                self.refused += e.status == 403
                if not e.passing:
                    self.error = e
                    return
            except Exception as e:  # noqa: BLE001 - the test looks at it
                self.error = e
                return


# CPython's `SSLSocket._create` raises without closing where a connection is reset before the
# handshake; the collector closes the socket.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <ssl.SSLSocket")
def test_a_restart_refuses_nobody_for_good(
    request: pytest.FixtureRequest,
    api_server: Mapping[str, str],
    second: Second,
    namespace: str,
    tmp_path: Path,
) -> None:
    """Each client goes on through the restart; one without any right is refused at once before."""
    token = tmp_path / "token"
    token.write_text(api_server["LAB_LIMITED_TOKEN"])
    path = f"/api/v1/namespaces/{namespace}/pods"

    def in_pod() -> Callable[[], object]:
        server = ApiServer(second.url, str(token), api_server["LAB_API_CA"], Refusals())
        request.addfinalizer(server.close)
        return lambda: server.ask(path, timeout_s=10, max_bytes=1 << 20)

    def on_command_line() -> Callable[[], object]:
        access = Access(second.kubeconfig, None, namespace)
        cluster, patience = connect(access, Vault()), Patience()

        def ask() -> None:
            try:
                cluster.get(path)
            except (ClusterRefusal, Unreachable) as e:
                patience.bear(e)
                raise
            patience.answered()

        return ask

    stranger = ApiServer(second.url, str(token), api_server["LAB_API_CA"], Refusals())
    request.addfinalizer(stranger.close)
    with pytest.raises(Permanent, match="may not list pods"):
        stranger.ask("/api/v1/namespaces/default/pods", timeout_s=10, max_bytes=1 << 20)
    clients = [Client(make()) for make in (in_pod, on_command_line) for _ in range(CLIENTS // 2)]
    for client in clients:
        client.start()
    for client in clients:
        assert client.asked.wait(30), client.error
    second.kill()
    second.start()
    # each needs 20 answers, which takes a busy machine minutes
    end = time.monotonic() + 300
    for client in clients:
        client.join(max(0, end - time.monotonic()))
    assert [client.error for client in clients] == [None] * CLIENTS
    assert not [client for client in clients if client.is_alive()]
    assert all(client.outages for client in clients)
    print("false refusals:", sum(client.refused for client in clients))

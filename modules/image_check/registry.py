"""One conversation with a registry about one image (OCI Distribution Specification 1.1)."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection, Mapping
from typing import Any, Literal, Never
from urllib.parse import urlencode, urljoin, urlsplit

from pairun.module import (
    Context,
    Fetched,
    Permanent,
    Secret,
    Skip,
    TimedOut,
    Transient,
    is_link_local,
    is_worth_a_retry,
    parse_record,
    retry_after_s,
    reveal,
)

from .challenge import challenges
from .platforms import KNOWN_PLATFORM, Platform, platform_of, platforms_in, variants_for
from .reference import HUB, HUB_NAMES, Reference, is_digest

# A registry shows an image only in formats that the client accepts.
_ACCEPT = (
    "application/vnd.oci.image.index.v1+json,"
    "application/vnd.oci.image.manifest.v1+json,"
    "application/vnd.docker.distribution.manifest.list.v2+json,"
    "application/vnd.docker.distribution.manifest.v2+json"
)

# Registries for which nodes usually have a login (the kubelet's credential providers). If the job
# has no login, their refusal does not show what the node may pull.
_NODE_LOGINS = re.compile(r".*\.azurecr\.(io|cn|us)|.*\.dkr\.ecr\..*|(.*\.)?gcr\.io|.*\.pkg\.dev")

_REQUEST_TIMEOUT_S = 10.0
_MAX_BODY_BYTES = 4 * 1024 * 1024
_MAX_REDIRECTS = 5

Auth = Mapping[str, str | Secret | None]
_Method = Literal["GET", "HEAD"]
_Headers = dict[str, str | Secret]
_Words = tuple[str, ...]


class Conversation:
    """The requests of one attempt to a registry, and the meaning of the answers.

    Shows no text that a server chose: it could repeat a login.

    Args:
        auth: the job's login: username, password, registry.
        end: when the attempt must be over, in `Context.now` seconds.
    """

    def __init__(self, ctx: Context, reference: Reference, auth: Auth, end: float) -> None:
        self._ctx = ctx
        self._reference = reference
        self._registry = reference.registry
        self._url = f"{reference.api}/v2/{reference.path}"
        self._end = end
        self._login, self._login_registry = _login(auth, reference)
        self._credentials: _Headers = {}

    def require_image(self) -> None:
        """Return if the image exists and this job may pull it.

        Raises:
            Permanent: it does not exist, or the registry refuses this job.
            Transient: the answer says nothing about the image.
            TimedOut: the registry did not respond in time.
            Skip: only the node can know.
        """
        answer = self._manifest("HEAD")
        asked_to_log_in = answer.status == 401
        if asked_to_log_in:
            self._credentials = {"Authorization": self._authorization(answer)}
            answer = self._manifest("HEAD")
        if answer.status == 404:
            root = self._root()
            if root.status == 401 and self._login is not None and not asked_to_log_in:
                # This registry shows private images only after a login, but does not ask for it.
                asked_to_log_in = True
                self._credentials = {"Authorization": self._authorization(root)}
                answer = self._manifest("HEAD")
        if 200 <= answer.status < 300:
            self._require_registry(answer)
        elif answer.status == 404:
            hint = f"check name and tag; {self._login_advice()}"
            raise Permanent(f"image {self._reference} does not exist", fault="user", hint=hint)
        elif asked_to_log_in and answer.status in (401, 403):
            self._refused()
        else:
            raise Transient(f"{self._registry} answered {answer.status}")

    def require_platform(self, node: Platform) -> None:
        """Return if a variant of the image runs on a platform.

        Raises:
            Permanent: none does.
            Transient: the image names no platform.
            TimedOut: the registry did not respond in time.
        """
        platforms = self._platforms()
        if any(p is not None and node.runs(p) for p in platforms):
            return
        if None in platforms:
            raise Transient(f"{self._reference} does not name its platforms")
        names = {str(p) if KNOWN_PLATFORM.fullmatch(str(p)) else "others" for p in platforms}
        raise Permanent(
            f"image {self._reference} is not built for {node}, only for "
            + (", ".join(sorted(names)[:20]) or "nothing"),
            fault="user",
            hint="build it for that platform too, or choose another image or other machines",
        )

    def command(self, architectures: Collection[str] = ()) -> tuple[_Words, _Words, str]:
        """The image's command; of an image for several platforms, its variants' common command.

        Args:
            architectures: of the nodes, in Go's words; empty for all architectures of the image.

        Returns:
            ENTRYPOINT, CMD, and the digest of the image that the name refers to now.

        Raises:
            Permanent: it does not exist, it is not built for an architecture, its variants run
                different commands, or the registry refuses this job.
            Transient: the registry gives no answer to this.
            TimedOut: it did not respond in time.
            Skip: only the node can know.
        """
        self.require_image()
        answer = self._manifest("GET")
        manifest = _json_object(answer)
        if isinstance(variants := manifest.get("manifests"), list):
            asked = variants_for(variants, architectures)
            each = {p: self._runs(_json_object(self._manifest("GET", d))) for p, d in asked.items()}
        else:
            each = {"": self._runs(manifest)}
        (entrypoint, cmd), *others = dict.fromkeys(each.values())
        if others:
            message = f"its variants run different commands: {', '.join(each)}"
            hint = "choose one with a nodeSelector for kubernetes.io/arch"
            raise Permanent(message, fault="user", hint=hint)
        # The digest of the received bytes, not the one that the registry claims.
        return entrypoint, cmd, f"sha256:{hashlib.sha256(answer.body).hexdigest()}"

    def _runs(self, manifest: Mapping[str, Any]) -> tuple[_Words, _Words]:
        """ENTRYPOINT and CMD of a single image."""
        runs = self._configuration(manifest).get("config")
        if not isinstance(runs, dict):
            raise Transient(
                f"{self._registry} does not report which command {self._reference} runs"
            )
        entrypoint, cmd = (runs.get(name) or [] for name in ("Entrypoint", "Cmd"))
        for words in (entrypoint, cmd):
            if not isinstance(words, list) or not all(isinstance(w, str) for w in words):
                raise Transient("the image's configuration is not valid")
        return tuple(entrypoint), tuple(cmd)

    # requests

    def _manifest(self, method: _Method, digest: str | None = None) -> Fetched:
        name = digest or self._reference.digest or self._reference.tag
        url = f"{self._url}/manifests/{name}"
        return self._fetch(url, self._registry, {"Accept": _ACCEPT, **self._credentials}, method)

    def _root(self) -> Fetched:
        """The API's root: a 404 counts only from a registry, not from any web server."""
        root = self._fetch(f"{self._reference.api}/v2/", self._registry, {}, leave=False)
        if root.status not in (200, 401):
            raise Transient(f"{self._registry} answered 404, but is not a registry")
        return root

    def _fetch(
        self, url: str, who: str, headers: _Headers, method: _Method = "GET", leave: bool = True
    ) -> Fetched:
        """Follow redirects to an answer.

        Sends credentials only to the same server. Asks another server without them, unless
        ``leave`` is false; then only its yes counts.
        """
        away = False
        for _ in range(_MAX_REDIRECTS + 1):
            answer = self._request(url, who, headers, method)
            if answer.status not in (301, 302, 303, 307, 308):
                if away and not 200 <= answer.status < 300:
                    raise Transient(f"{who} redirects to a server that answered {answer.status}")
                return answer
            try:
                url, same_server = _redirect(url, answer.header("location") or "")
            except ValueError:
                raise Transient(f"{who} redirects to an invalid address") from None
            if not same_server and not leave:
                raise Transient(f"{who} redirects to another server")
            if not same_server:
                away, headers = True, {k: v for k, v in headers.items() if k != "Authorization"}
        raise Transient(f"{who} redirects more than {_MAX_REDIRECTS} times")

    def _request(self, url: str, who: str, headers: _Headers, method: _Method) -> Fetched:
        timeout_s = min(_REQUEST_TIMEOUT_S, self._end - self._ctx.now())
        try:
            answer = self._ctx.fetch(
                url, method=method, headers=headers, timeout_s=timeout_s, max_bytes=_MAX_BODY_BYTES
            )
        except (Transient, TimedOut, Permanent) as e:
            # An invalid certificate says nothing about the image.
            kind = Transient if isinstance(e, Permanent) else type(e)
            raise kind(_with_name(e.message, url, who), fault=e.fault) from None
        if is_worth_a_retry(answer.status):
            raise Transient(
                f"{who} answered {answer.status}",
                retry_after_s=retry_after_s(answer.header("retry-after"), self._ctx.now()),
            )
        return answer

    # logging in

    def _authorization(self, answer: Fetched) -> Secret:
        """The header for the registry's challenge."""
        offered = challenges(answer.headers.get("www-authenticate", ()))
        for challenge in offered:
            if challenge.scheme == "bearer" and "realm" in challenge.parameters:
                return self._bearer_token(challenge.parameters)
        if any(challenge.scheme == "basic" for challenge in offered):
            if self._login is None:
                self._refused()
            return self._login
        raise Transient(f"{self._registry} asks for an unknown kind of login")

    def _bearer_token(self, challenge: Mapping[str, str]) -> Secret:
        """A token from the service that the registry names, with or without the login."""
        realm, who = challenge["realm"], f"the token service of {self._registry}"
        try:
            address = urlsplit(realm)
            realm_host, scheme = address.hostname or "", address.scheme
        except ValueError:
            realm_host = scheme = ""
        is_plain = re.match(r"https?://[A-Za-z0-9.:\[\]-]{1,255}(?=[/?]|$)", realm, re.IGNORECASE)
        downgrades = scheme == "http" and self._url.startswith("https:")
        if not is_plain or not realm_host or downgrades or is_link_local(realm_host):
            raise Transient(f"{self._registry} names an unsafe token service")
        if self._login and not _are_related(realm_host, urlsplit(self._url).hostname or ""):
            raise Transient(
                f"{self._registry} names a token service of another domain, to which pairun does not "
                "send the job's login"
            )
        scope = challenge.get("scope", f"repository:{self._reference.path}:pull")
        query = {"service": challenge["service"]} if "service" in challenge else {}
        query["scope"] = scope
        url = f"{realm}{'&' if '?' in realm else '?'}{urlencode(query)}"
        login: _Headers = {"Authorization": self._login} if self._login else {}
        answer = self._fetch(url, who, login, leave=False)
        if answer.status in (401, 403):
            self._refused()
        if answer.status != 200:
            raise Transient(f"{who} answered {answer.status}")
        document = _json_object(answer)
        token = document.get("token") or document.get("access_token")
        if not isinstance(token, str) or not re.fullmatch("[!-~]+", token):
            raise Transient(f"{who} answered without a token")
        self._ctx.hide([token])
        return Secret(f"Bearer {token}")

    def _refused(self) -> Never:
        reference = self._reference
        if self._login is not None:
            raise Permanent(
                f"{reference.registry} refuses the job's login for {reference.path}",
                fault="user",
                hint="check user, password and name; a registry may answer the same for an image "
                "that does not exist",
            )
        if _NODE_LOGINS.fullmatch(reference.registry.lower()):
            raise Skip(f"{reference.registry} requires a login, and the node may have its own")
        raise Permanent(
            f"{reference.registry} does not show {reference.path} without a login",
            fault="user",
            hint="check the name: a registry may answer the same for an image that does not "
            f"exist; {self._login_advice()}",
        )

    def _login_advice(self) -> str:
        if self._login is not None:
            return "the job's login was used"
        if self._login_registry is not None:
            return f"the job's login is for {self._login_registry}, so it was not used"
        return "a private image needs a login in `auth`"

    # reading answers

    def _require_registry(self, answer: Fetched) -> None:
        is_document = re.search("json|prettyjws", (answer.header("content-type") or "").lower())
        if not is_document and "docker-content-digest" not in answer.headers:
            raise Transient(f"{self._registry} answered, but not like a registry")

    def _platforms(self) -> list[Platform | None]:
        """The platforms in an index, or the one in a single image's configuration."""
        manifest = _json_object(self._manifest("GET"))
        if isinstance(variants := manifest.get("manifests"), list):
            return [platform for platform, _ in platforms_in(variants)]
        return [platform_of(self._configuration(manifest))]

    def _configuration(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """The configuration of a single image's manifest; empty if it names none."""
        config = manifest.get("config")
        digest = config.get("digest") if isinstance(config, dict) else None
        if not is_digest(digest):
            return {}
        url = f"{self._url}/blobs/{digest}"
        return _json_object(self._fetch(url, self._registry, self._credentials))


def _login(auth: Auth, reference: Reference) -> tuple[Secret | None, str | None]:
    """The login as a header if it is for this registry; and the registry it is for."""
    user, password = reveal(auth.get("username") or ""), reveal(auth.get("password") or "")
    if not user or not password:
        return None, None
    given = reveal(auth.get("registry") or "").strip() or HUB
    host = re.sub("^https?://", "", given, flags=re.IGNORECASE).partition("/")[0].lower()
    host = HUB if host in HUB_NAMES else host
    if host != reference.registry.lower():
        return None, host
    encoded = base64.b64encode(f"{user}:{password}".encode("utf-8", "surrogateescape"))
    return Secret(f"Basic {encoded.decode()}"), host


def _are_related(one: str, other: str) -> bool:
    """Whether two hosts are the same, or two names with the same last two labels."""
    labels = [host.lower().rstrip(".").split(".") for host in (one, other)]
    if labels[0] == labels[1]:
        return True
    are_names = all(len(each) > 1 and not each[-1].isdigit() for each in labels)
    return are_names and labels[0][-2:] == labels[1][-2:]


def _redirect(url: str, location: str) -> tuple[str, bool]:
    """A redirect's target, and whether it is the same server: TLS may begin there, not end.

    Raises:
        ValueError: the address must not be followed.
    """
    target = urljoin(url, location)
    a, b = urlsplit(url), urlsplit(target)
    ports = {"http": 80, "https": 443}
    if not location or not b.hostname or b.scheme not in ports or a.scheme > b.scheme:
        raise ValueError
    if is_link_local(b.hostname):
        raise ValueError
    first, second = ((p.scheme, p.port or ports[p.scheme]) for p in (a, b))
    same = first == second or (first, second) == (("http", 80), ("https", 443))
    return target, same and a.hostname == b.hostname


def _with_name(message: str, url: str, who: str) -> str:
    """A network message with the server's role instead of its host, which the server chose."""
    host = re.sub(":[0-9]*$", "", re.split("[/?#]", url)[2]).strip("[]")
    shown = re.compile(rf"(?<![\w.-])\[?{re.escape(host)}\]?(:[0-9]+)?(?![\w.-])", re.IGNORECASE)
    return shown.sub(lambda _: who, message)


def _json_object(answer: Fetched) -> dict[str, Any]:
    """The JSON object in an answer; empty if it contains none."""
    return (parse_record(answer.body) if answer.status == 200 else None) or {}

"""Check that a container image exists and may be pulled."""

from __future__ import annotations

import base64
import json
import os
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, Never
from urllib.parse import urlencode, urljoin, urlsplit

from pairun.module import (
    CheckModule,
    Context,
    Duration,
    Fetched,
    Permanent,
    Result,
    Secret,
    Skip,
    TimedOut,
    Transient,
    arg,
    define,
    format_duration,
    is_worth_a_retry,
    retry_after_s,
    reveal,
)

_HUB = "docker.io"
_HUB_API = "https://registry-1.docker.io"
_HUB_NAMES = ("docker.io", "index.docker.io", "registry-1.docker.io")

# A registry shows an image only in a form that the client says it understands.
_ACCEPT = (
    "application/vnd.oci.image.index.v1+json,"
    "application/vnd.oci.image.manifest.v1+json,"
    "application/vnd.docker.distribution.manifest.list.v2+json,"
    "application/vnd.docker.distribution.manifest.v2+json"
)

# Where nodes usually have a login of their own (the kubelet's credential providers): without a
# login of the job, such a registry's refusal says nothing about what the node may pull.
_NODE_LOGINS = re.compile(r".*\.azurecr\.(io|cn|us)|.*\.dkr\.ecr\..*|(.*\.)?gcr\.io|.*\.pkg\.dev")

_ONE_REQUEST_S = 10.0
_LARGEST_BODY = 4 * 1024 * 1024
_REDIRECTIONS = 5
# What the tries leave of the attempt's time, to say what became of them before it is stopped.
_RESERVE_S = 1.0
_FIRST_WAIT_S = 2.0


# --- references ------------------------------------------------------------------------------------


class Reference(NamedTuple):
    """An image's name, in parts; ``plain`` is asked without TLS.

    The registry is ``docker.io`` for Docker Hub, where the path includes ``library/``.
    """

    registry: str
    path: str
    tag: str | None
    digest: str | None
    plain: bool = False

    def __str__(self) -> str:
        name = f"{self.registry}/{self.path}"
        name += f":{self.tag}" if self.tag else ""
        return name + (f"@{self.digest}" if self.digest else "")

    @property
    def api(self) -> str:
        """Where the registry's API stands."""
        if self.registry == _HUB:
            return _HUB_API
        return f"{'http' if self.plain else 'https'}://{self.registry}"


_LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_HOST = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:]+\])")
_COMPONENT = re.compile("[a-z0-9]+(?:(?:[.]|__?|-+)[a-z0-9]+)*")
_TAG = re.compile("[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST_SIZES = {"sha256": 64, "sha384": 96, "sha512": 128}
_LOCAL = re.compile(r"localhost|127(?:\.[0-9]{1,3}){3}|\[::1\]")


def parse_reference(text: str) -> Reference:
    """Read an image's name by the grammar of the distribution project's ``reference`` package.

    Surrounding space and a leading ``http://`` or ``https://`` are accepted.

    Raises:
        ValueError: it is not valid; the sentence shows the part that is wrong.
    """
    rest = text.strip()
    if not rest:
        raise ValueError("the image has no name")
    scheme = re.match("(https?)://", rest, re.IGNORECASE)
    rest = rest[scheme.end() :] if scheme else rest
    if re.fullmatch("[0-9a-f]{64}", rest):
        raise ValueError(f"{rest!r} is an image's id, and no repository")
    first, slash, _ = rest.partition("/")
    if slash and "@" in first:
        # Not a word of it: a password may stand anywhere.
        raise ValueError("a user or password stands before the registry's name: 'auth' takes them")
    name, has_digest, digest = rest.partition("@")
    if has_digest:
        _check_digest(digest)
    first, slash, after = name.partition("/")
    # A first part with a dot, a colon or an upper-case letter cannot be a repository at the Hub.
    is_host = slash and (re.search("[.:A-Z]", first) or first == "localhost")
    registry, repository = (first, after) if is_host else (_HUB, name)
    if registry.lower() in _HUB_NAMES:
        registry = _HUB
    host = _check_host(registry)
    path, has_tag, tag = repository.partition(":")
    if has_tag and not _TAG.fullmatch(tag):
        raise ValueError(
            f"{tag!r} is no tag: letters, digits, '_', '.', '-', at most 128, not '.' or '-' first"
        )
    _check_path(path)
    if registry == _HUB and "/" not in path:
        path = f"library/{path}"
    if len(path) > 255:
        raise ValueError(f"the repository has {len(path)} characters, more than 255")
    plain = scheme[1].lower() == "http" if scheme else bool(_LOCAL.fullmatch(host.lower()))
    return Reference(
        registry,
        path,
        tag if has_tag else None if has_digest else "latest",
        digest if has_digest else None,
        plain and registry != _HUB,
    )


def _check_digest(digest: str) -> None:
    algorithm, _, value = digest.partition(":")
    size = _DIGEST_SIZES.get(algorithm)
    if size is None:
        raise ValueError(f"{digest!r} is no digest: it begins with sha256:, sha384: or sha512:")
    if not re.fullmatch("[0-9a-f]*", value) or len(value) != size:
        raise ValueError(
            f"{digest!r} is no digest: {size} of the digits 0-9a-f follow {algorithm}:"
        )


def _check_host(registry: str) -> str:
    """The host of a registry, its port left off."""
    found = _HOST.match(registry)
    port = registry[found.end() :] if found else ""
    if not found or not re.fullmatch("(?::[0-9]{1,5})?", port) or int(port[1:] or 0) > 65535:
        raise ValueError(f"{registry!r} is no registry: a host, and perhaps a port")
    return found[0]


def _check_path(path: str) -> None:
    if not path:
        raise ValueError("the name of the repository is missing")
    for component in path.split("/"):
        if not _COMPONENT.fullmatch(component):
            raise ValueError(
                f"{component!r} in the repository's name is wrong: lower-case letters and digits, "
                "with single '.', one or two '_', or '-' between them"
            )


# --- challenges ------------------------------------------------------------------------------------


class Challenge(NamedTuple):
    """One way in which a server lets somebody in; scheme and names in lower case."""

    scheme: str
    parameters: dict[str, str]


_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # noqa: S105 - a word of the grammar
_PARAMETER = re.compile(rf'({_TOKEN})[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s",]+))')
_SCHEME = re.compile(rf"({_TOKEN})(?:[ \t]+[A-Za-z0-9._~+/-]+=*(?=[ \t]*(?:,|$)))?")


def challenges(lines: Iterable[str]) -> list[Challenge]:
    """Read ``WWW-Authenticate`` by RFC 9110 (11.6.1): several lines, several challenges in one.

    What does not follow the grammar ends its line; what was read before it counts.
    """
    found: list[Challenge] = []
    for line in lines:
        at, first = 0, len(found)
        while at < len(line):
            if line[at] in " \t,":
                at += 1
            elif len(found) > first and (match := _PARAMETER.match(line, at)):
                quoted, plain = match[2], match[3]
                value = plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
                found[-1].parameters.setdefault(match[1].lower(), value)
                at = match.end()
            elif match := _SCHEME.match(line, at):
                found.append(Challenge(match[1].lower(), {}))
                at = match.end()
            else:
                break
    return found


# --- platforms -------------------------------------------------------------------------------------

_ALIASES = {
    "x86_64": "amd64", "i386": "386", "i686": "386", "aarch64": "arm64", "armv7l": "arm/v7",
    "armv6l": "arm/v6", "armhf": "arm/v7", "loongarch64": "loong64",
}  # fmt: skip
# What container engines also take for such a machine.
_ALSO_RUNS = {"amd64": "386", "arm64": "arm"}
_KNOWN_PLATFORM = re.compile(
    "(linux|windows|darwin|freebsd)/(386|amd64|arm(64)?|loong64|mips(64)?(le)?|ppc64(le)?|riscv64|"
    r"s390x)(/v[0-9]{1,2}(\.[0-9])?)?"
)


class Platform(NamedTuple):
    """What an image was built for, in Go's words; the variant is empty where none is said."""

    os: str
    architecture: str
    variant: str

    def __str__(self) -> str:
        return "/".join(filter(None, self))

    def runs(self, image: Platform) -> bool:
        """Whether it runs such an image: a variant counts where both say one, and may be older."""
        if self.os != image.os:
            return False
        if self.architecture != image.architecture:
            return _ALSO_RUNS.get(self.architecture) == image.architecture
        wanted, offered = (re.findall("[0-9]{1,9}", p.variant) for p in (self, image))
        return not wanted or list(map(int, offered)) <= list(map(int, wanted))


def parse_platform(text: str) -> Platform:
    """Read ``OS/ARCHITECTURE[/VARIANT]``; ``node`` is the machine this runs on."""
    if text == "node":
        text = f"linux/{os.uname().machine}"
    system, _, rest = text.lower().partition("/")
    architecture, _, variant = rest.partition("/")
    architecture, _, implied = _ALIASES.get(architecture, architecture).partition("/")
    return Platform(system, architecture, variant or implied)


def _platform_of(said: object) -> Platform | None:
    """The platform that a descriptor or an image's configuration names."""
    parts = said if isinstance(said, dict) else {}
    named = [parts.get(k) for k in ("os", "architecture", "variant")]
    names = [n if isinstance(n, str) else "" for n in named]
    return parse_platform("/".join(names)) if names[0] and names[1] else None


# --- the check -------------------------------------------------------------------------------------

_Policy = Literal["off", "warn", "fail"]
_Method = Literal["GET", "HEAD"]
_Headers = dict[str, str | Secret]


class _No(Exception):
    """A definite answer: the image is not there, or not for this job."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class _Unclear(Exception):
    """An answer that says nothing about the image, and would say no more if asked again."""


@define
class ImageCheck(CheckModule):
    """Ask the registry whether an image exists and may be pulled, before a node tries to.

    Only a definite answer fails: the image is not there, or the registry refuses the job's login.
    A registry that is slow, broken, busy or strange makes the result "unknown", which is no failure.
    The manifest is asked for with HEAD, which no registry counts as a pull; only `platform` needs
    the manifest itself.

    Credentials go to the registry that they are for, and to the token service it names, over TLS
    unless the registry itself is asked without.
    """

    phases = ("init",)
    privileges = "network"
    example = "image_check: {image: 'ghcr.io/team/train:1.0', policy: warn}"

    image: str = arg("The image, as the container engine takes it.")
    auth: dict[str, str | Secret | None] | None = arg(
        "The login: username, password, and registry (Docker Hub by default).", default=None
    )
    policy: _Policy = arg(
        "What a definite no does: nothing is asked, it is said, or it fails.", default="fail"
    )
    registries: dict[str, _Policy] | None = arg(
        "Policies by registry (HOST or HOST:PORT, with *), the first that fits, before 'policy'.",
        default=None,
    )
    platform: str | None = arg(
        "What the image must be for too: OS/ARCHITECTURE[/VARIANT], or 'node' for this machine.",
        default=None,
    )
    tries: int = arg("How often to ask when there is trouble.", default=3)
    timeout: Duration = arg("For all tries and waits together.", default=Duration(30.0))

    def require(self) -> Iterator[str]:
        """Known keys, and something to do."""
        for key in self.auth or {}:
            if key not in ("username", "password", "registry"):
                yield f"'auth' has username, password and registry, not '{key}'"
        for pattern in self.registries or {}:
            if not re.fullmatch(r"[A-Za-z0-9.:*\[\]-]+", pattern):
                yield f"'registries' has HOST or HOST:PORT, with *, not '{pattern}'"
        platform = "node" if self.platform is None else self.platform
        if platform != "node" and not _KNOWN_PLATFORM.fullmatch(str(parse_platform(platform))):
            yield f"'platform' is like linux/amd64 or linux/arm/v7, or node, not '{self.platform}'"
        if self.tries < 1:
            yield "'tries' must be at least 1"
        if self.timeout <= 0:
            yield "'timeout' must be longer than nothing"

    def check(self, ctx: Context) -> Result:
        """Ask, a few times if need be.

        Raises:
            Permanent: the image's name is not valid, the image is not there, or it is refused.
            Skip: the policy is ``off``.
        """
        policy = self._policy()
        if policy == "off":
            raise Skip("the policy is off")
        try:
            return Result(message=self._ask_often(ctx))
        except _No as e:
            if policy == "fail":
                raise Permanent(e.message, fault="user", hint=e.hint) from None
            ctx.log(f"{e.message}; {e.hint}")
            return Result(message=f"only a warning: {e.message}")

    def _policy(self) -> _Policy:
        """What the operator wrote for the registry, or else the policy."""
        try:
            name = parse_reference(self.image).registry.lower()
        except ValueError:
            return self.policy
        names = _HUB_NAMES if name == _HUB else (name, _check_host(name))
        for pattern, policy in (self.registries or {}).items():
            glob = ".*".join(map(re.escape, pattern.lower().split("*")))
            if any(re.fullmatch(glob, n) for n in names):
                return policy
        return self.policy

    def _ask_often(self, ctx: Context) -> str:
        """Ask until there is an answer, the tries are used up, or the time is."""
        try:
            reference = parse_reference(self.image)
        except ValueError as e:
            raise _No(str(e), "write [HOST[:PORT]/]PATH[:TAG][@DIGEST]") from None
        limit = float(self.timeout)
        if (remaining := ctx.remaining_s()) is not None:
            limit = min(limit, remaining - _RESERVE_S)
        end = ctx.now() + limit
        trouble = ""
        for number in range(1, self.tries + 1):
            wait: float | None = None
            try:
                _Conversation(self, ctx, reference, end).run()
            except (Transient, TimedOut) as e:
                trouble, wait = e.message, e.retry_after_s
                if wait is None:
                    wait = random.uniform(0, _FIRST_WAIT_S * 2.0 ** min(number - 1, 16))  # noqa: S311
            except (_Unclear, Permanent) as e:
                trouble = str(e)
            else:
                return f"{reference} is there" + (f" for {self.platform}" if self.platform else "")
            if wait is None or number == self.tries or ctx.now() + wait >= end:
                break
            ctx.log(f"try {number} of {self.tries}: {trouble}; next in {format_duration(wait)}")
            ctx.sleep(wait)
        ctx.log(f"whether {reference} is there is unknown: {trouble}")
        return f"unknown: {trouble}"


class _Conversation:
    """One try: what is said to the registry, and what it means.

    No text that a server chose is shown: one that has seen a login could repeat it there.

    Args:
        check: what is asked for.
        ctx: the way to the network.
        reference: the image.
        end: when it must be over, as `Context.now` tells the time.
    """

    def __init__(self, check: ImageCheck, ctx: Context, reference: Reference, end: float) -> None:
        self._ctx = ctx
        self._reference = reference
        self._registry = reference.registry
        self._url = f"{reference.api}/v2/{reference.path}"
        self._platform = parse_platform(check.platform) if check.platform else None
        self._end = end
        self._login, self._login_is_for = _login(check.auth or {}, reference)
        self._pass: _Headers = {}  # what the registry wants to see

    def run(self) -> None:
        """Return when the image is there for the job.

        Raises:
            _No: it is not.
            _Unclear: nobody can tell.
            Transient: ask again.
            TimedOut: ask again.
        """
        answer = self._manifest("HEAD")
        asked = answer.status == 401
        if asked:
            self._pass = {"Authorization": self._authorization(answer)}
            answer = self._manifest("HEAD")
        if answer.status == 404:
            root = self._root()
            if root.status == 401 and self._login is not None and not asked:
                # It lets everybody in, shows private images to those who log in, and does not ask.
                asked = True
                self._pass = {"Authorization": self._authorization(root)}
                answer = self._manifest("HEAD")
        if 200 <= answer.status < 300:
            self._recognise(answer)
            if self._platform is not None:
                self._compare(self._platform)
        elif answer.status == 404:
            raise _No(
                f"there is no image {self._reference}", f"check name and tag; {self._advice()}"
            )
        elif asked and answer.status in (401, 403):
            self._refused()
        else:
            raise _Unclear(f"{self._registry} answered {answer.status}")

    def _manifest(self, method: _Method) -> Fetched:
        url = f"{self._url}/manifests/{self._reference.digest or self._reference.tag}"
        return self._fetch(url, self._registry, {"Accept": _ACCEPT, **self._pass}, method)

    def _root(self) -> Fetched:
        """The API's entrance: a 404 counts when a registry says it, not any web server."""
        root = self._fetch(f"{self._reference.api}/v2/", self._registry, {}, leave=False)
        if root.status not in (200, 401):
            raise _Unclear(f"{self._registry} answered 404, but is no registry")
        return root

    def _fetch(
        self, url: str, who: str, headers: _Headers, method: _Method = "GET", leave: bool = True
    ) -> Fetched:
        """An answer that is worth looking at, a few redirections later.

        Credentials go along to the same server only. Another one is asked without, unless not even
        that is wanted (``leave``), and only its yes counts.
        """
        away = False
        for _ in range(_REDIRECTIONS + 1):
            answer = self._ask(url, who, headers, method)
            if answer.status not in (301, 302, 303, 307, 308):
                if away and not 200 <= answer.status < 300:
                    raise _Unclear(f"{who} sends elsewhere, which answered {answer.status}")
                return answer
            try:
                url, same = _follow(url, answer.header("location") or "")
            except ValueError:
                raise _Unclear(f"{who} sends to where nobody should go") from None
            if not same and not leave:
                raise _Unclear(f"{who} sends elsewhere")
            if not same:
                away, headers = True, {k: v for k, v in headers.items() if k != "Authorization"}
        raise _Unclear(f"{who} sends from place to place")

    def _ask(self, url: str, who: str, headers: _Headers, method: _Method) -> Fetched:
        """One request."""
        left = min(_ONE_REQUEST_S, self._end - self._ctx.now())
        try:
            answer = self._ctx.fetch(
                url, method=method, headers=headers, timeout_s=left, max_bytes=_LARGEST_BODY
            )
        except (Transient, TimedOut, Permanent) as e:
            host = re.sub(":[0-9]*$", "", re.split("[/?#]", url)[2]).strip("[]")
            shown = re.compile(
                rf"(?<![\w.-])\[?{re.escape(host)}\]?(:[0-9]+)?(?![\w.-])", re.IGNORECASE
            )
            raise type(e)(shown.sub(lambda _: who, e.message), fault=e.fault) from None
        if is_worth_a_retry(answer.status):
            raise Transient(
                f"{who} answered {answer.status}",
                retry_after_s=retry_after_s(answer.header("retry-after"), self._ctx.now()),
            )
        return answer

    # what a registry wants to see

    def _authorization(self, answer: Fetched) -> Secret:
        """What the registry's challenge asks for."""
        found = challenges(answer.headers.get("www-authenticate", ()))
        for challenge in found:
            if challenge.scheme == "bearer" and "realm" in challenge.parameters:
                return self._bearer(challenge.parameters)
        if any(challenge.scheme == "basic" for challenge in found):
            if self._login is None:
                self._refused()
            return self._login
        raise _Unclear(f"{self._registry} wants a login of a kind that is not known here")

    def _bearer(self, challenge: Mapping[str, str]) -> Secret:
        """A token from the service that the registry names, with the login or without."""
        realm, who = challenge["realm"], f"the token service of {self._registry}"
        host = re.match(r"(https?)://[A-Za-z0-9.:\[\]-]{1,255}(?=[/?]|$)", realm, re.IGNORECASE)
        if not host or (host[1].lower() == "http" and self._url.startswith("https:")):
            raise _Unclear(f"{self._registry} names a token service that is not safe")
        scope = challenge.get("scope", f"repository:{self._reference.path}:pull")
        query = {"service": challenge["service"]} if "service" in challenge else {}
        query["scope"] = scope
        url = f"{realm}{'&' if '?' in realm else '?'}{urlencode(query)}"
        login: _Headers = {"Authorization": self._login} if self._login else {}
        answer = self._fetch(url, who, login, leave=False)
        if answer.status in (401, 403):
            self._refused()
        if answer.status != 200:
            raise _Unclear(f"{who} answered {answer.status}")
        said = _object(answer)
        token = said.get("token") or said.get("access_token")
        if not isinstance(token, str) or not re.fullmatch("[!-~]+", token):
            raise _Unclear(f"{who} answered without a token")
        return Secret(f"Bearer {token}")

    # what an answer means

    def _recognise(self, answer: Fetched) -> None:
        kind = (answer.header("content-type") or "").lower()
        if "docker-content-digest" in answer.headers or "json" in kind or "prettyjws" in kind:
            return
        raise _Unclear(f"{self._registry} answered, but not as registries do")

    def _compare(self, wanted: Platform) -> None:
        """Return when a variant of the image runs on a platform."""
        found = self._platforms()
        if any(p is not None and wanted.runs(p) for p in found):
            return
        if None in found:
            raise _Unclear(f"{self._reference} does not say for which platforms it is")
        names = [str(p) if _KNOWN_PLATFORM.fullmatch(str(p)) else "others" for p in found]
        raise _No(
            f"{self._reference} is not for {wanted}, only for "
            + (", ".join(sorted(set(names))[:20]) or "nothing"),
            "build it for that platform too, or choose another image or other machines",
        )

    def _platforms(self) -> list[Platform | None]:
        """What an index lists, or the one platform that a single image's configuration names."""
        manifest = _object(self._manifest("GET"))
        if isinstance(variants := manifest.get("manifests"), list):
            found = [
                _platform_of(v.get("platform") if isinstance(v, dict) else 0) for v in variants
            ]
            # What a builder attaches, its attestations, is marked so.
            return [p for p in found if p is None or p.os != "unknown"]
        config = manifest.get("config")
        digest = config.get("digest") if isinstance(config, dict) else None
        try:
            _check_digest(digest if isinstance(digest, str) else "")
        except ValueError:
            return [None]
        url = f"{self._url}/blobs/{digest}"
        return [_platform_of(_object(self._fetch(url, self._registry, self._pass)))]

    def _refused(self) -> Never:
        reference = self._reference
        if self._login is not None:
            raise _No(
                f"{reference.registry} refuses the job's login for {reference.path}",
                "check user, password, and the name: what may not be seen looks the same",
            )
        if _NODE_LOGINS.fullmatch(reference.registry.lower()):
            raise _Unclear(
                f"{reference.registry} wants a login, and the node may have one of its own"
            )
        raise _No(
            f"{reference.registry} does not show {reference.path} without a login",
            f"check the name: what is not there looks the same; {self._advice()}",
        )

    def _advice(self) -> str:
        if self._login is not None:
            return "the job's login was used"
        if self._login_is_for is not None:
            return f"the job's login is for {self._login_is_for}, so it was not used"
        return "a private image needs a login in `auth`"


def _login(
    auth: Mapping[str, str | Secret | None], reference: Reference
) -> tuple[Secret | None, str | None]:
    """The login as a header if it is for this registry; and the registry it is for."""
    user, password = reveal(auth.get("username") or ""), reveal(auth.get("password") or "")
    if not user or not password:
        return None, None
    given = reveal(auth.get("registry") or "").strip() or _HUB
    host = re.sub("^https?://", "", given, flags=re.IGNORECASE).partition("/")[0].lower()
    host = _HUB if host in _HUB_NAMES else host
    if host != reference.registry.lower():
        return None, host
    encoded = base64.b64encode(f"{user}:{password}".encode("utf-8", "surrogateescape"))
    return Secret(f"Basic {encoded.decode()}"), host


def _follow(url: str, location: str) -> tuple[str, bool]:
    """Where a redirection leads, and whether to the same server: TLS may begin there, not end.

    Raises:
        ValueError: to where nobody should go.
    """
    target = urljoin(url, location)
    a, b = urlsplit(url), urlsplit(target)
    ports = {"http": 80, "https": 443}
    if not location or not b.hostname or b.scheme not in ports or a.scheme > b.scheme:
        raise ValueError
    first, second = ((p.scheme, p.port or ports[p.scheme]) for p in (a, b))
    same = first == second or (first, second) == (("http", 80), ("https", 443))
    return target, same and a.hostname == b.hostname


def _object(answer: Fetched) -> dict[str, Any]:
    """The JSON object that was asked for; empty where there is none."""
    try:
        said = json.loads(answer.body)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) and answer.status == 200 else {}

"""Clone a git repository."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from pairun.module import (
    Context,
    Failure,
    Fault,
    Permanent,
    Result,
    Secret,
    StateModule,
    Transient,
    Verdict,
    arg,
    define,
    no_change,
    reveal,
    will_change,
)

# Further options that a job may give: whether they take a value, and their one spelling here.
# Everything else could start a program (--upload-pack, --config, --template, …).
_ALLOWED: dict[str, tuple[str, bool]] = {
    "--depth": ("--depth", True),
    "--branch": ("--branch", True),
    "-b": ("--branch", True),
    "--jobs": ("--jobs", True),
    "-j": ("--jobs", True),
    "--single-branch": ("--single-branch", False),
    "--no-single-branch": ("--no-single-branch", False),
    "--recursive": ("--recurse-submodules", False),
    "--recurse-submodules": ("--recurse-submodules", False),
    "--shallow-submodules": ("--shallow-submodules", False),
    "--no-tags": ("--no-tags", False),
    "--quiet": ("--quiet", False),
    "-q": ("--quiet", False),
}
_NUMBERS = ("--depth", "--jobs")

# Answers git's question for a user and a password from the environment of the command, so that
# neither stands in an argument list, in a log or in the clone's configuration (gitcredentials(7)).
_CREDENTIAL_HELPER = (
    '!f() { test "$1" = get && printf "username=%s\\npassword=%s\\n"'
    ' "$PAIRUN_GIT_USERNAME" "$PAIRUN_GIT_PASSWORD"; }; f'
)

_AUTH_HINT = "check the address, the user and the token; does the token still live?"
_ABSENT_HINT = "check the address; a private repository without credentials looks the same"

# What git says, and what that means. The first match counts.
_MEANINGS: tuple[tuple[str, type[Failure], Fault, str | None], ...] = (
    (r"returned error: (429|5\d\d)", Transient, "platform", None),
    (
        (
            r"returned error: (401|403)|authentication failed|could not read (username|password)"
            r"|terminal prompts disabled|permission denied|access denied"
        ),
        Permanent,
        "user",
        _AUTH_HINT,
    ),
    (
        (
            r"could not resolve|temporary failure in name resolution|timed out|timeout|too slow"
            r"|connection (refused|reset|closed)|failed to connect|unable to connect"
            r"|network is unreachable|no route to host|early eof|unexpected disconnect|rpc failed"
            r"|gnutls|ssl_read|ssl_error_syscall"
        ),
        Transient,
        "platform",
        None,
    ),
    (r"no space left on device|disk quota", Transient, "unknown", "free space at 'dest'"),
    (r"certificate", Permanent, "platform", "the image needs the server's certificate authority"),
    (
        r"host key verification failed",
        Permanent,
        "user",
        "add the server to known_hosts, or use https",
    ),
    (r"remote branch .* not found|couldn't find remote ref", Permanent, "user", "check the branch"),
    (
        r"returned error: 404|not found|does not exist|does not appear to be a git repository",
        Permanent,
        "user",
        _ABSENT_HINT,
    ),
)


class _Clone(NamedTuple):
    """What a clone's own files say about it."""

    url: str
    ref: str
    sha: str
    tag: bool


class _State(NamedTuple):
    """What stands at the destination: nothing, a clone, or something else (why, in words)."""

    clone: _Clone | None
    blocked: str | None


@define
class GitClone(StateModule):
    """Clone a git repository, or find that it is there.

    The clone appears at once and complete: it is made beside the destination and moved. A clone
    that is there holds when it is of the same repository and at the wanted commit, or on the
    wanted branch; a branch that has moved on since is not fetched again. Anything else at the
    destination is left alone, and an error.

    Credentials in an http address (``https://user:token@host/…``) are not kept in the clone.
    """

    phases = ("init",)
    privileges = "network; may write beside the destination"
    example = "git_clone: {repo: 'https://example.com/a.git', dest: /usr/local/pai/code, depth: 1}"

    repo: str | Secret = arg("The repository's address.")
    dest: str = arg("Where the clone shall stand; an absolute path.")
    branch: str | None = arg(
        "The branch or tag; the repository's own choice by default.", default=None
    )
    commit: str | None = arg("The commit, in full or at least 4 digits of it.", default=None)
    depth: int | None = arg("How much history to fetch; all by default.", default=None)
    options: list[str] = arg(
        "Further options of `git clone`; see the list of allowed ones.", factory=list
    )

    def require(self) -> Iterator[str]:
        """Nothing that could start a program, and nothing that is said twice."""
        yield from _address_problems(self.repo)
        if not os.path.isabs(self.dest) or os.path.normpath(self.dest) in ("/", "//"):
            yield f"'dest' must be an absolute path below the root, not {self.dest!r}"
        if self.commit is not None and not re.fullmatch("[0-9a-fA-F]{4,64}", self.commit):
            yield "'commit' must be at least 4 hexadecimal digits; a branch or tag goes to 'branch'"
        if self.branch is not None and (not self.branch or self.branch.startswith("-")):
            yield f"'branch' must be the name of a branch or tag, not {self.branch!r}"
        if self.depth is not None and self.depth < 1:
            yield "'depth' must be at least 1"
        try:
            given = [name for name, _ in _parsed(self.options)]
        except ValueError as e:
            yield str(e)
            return
        for name, value in (("--branch", self.branch), ("--depth", self.depth)):
            if given.count(name) + (value is not None) > 1:
                yield f"'{name[2:]}' is given more than once"

    def probe(self, ctx: Context) -> _State:
        """What stands at the destination; nothing that stands there is executed."""
        found = ctx.stat(self.dest)
        if found is None:
            return _State(None, None)
        if found.kind != "directory":
            return _State(None, f"a {found.kind} that is no clone")
        if not ctx.list_dir(self.dest):
            return _State(None, None)
        clone = _read_clone(ctx, self.dest, self._branch())
        return _State(clone, None if clone else "a directory that is not empty and no clone")

    def plan(self, state: _State) -> Verdict:
        """Compare the repository, and the commit or the branch."""
        after = f"{self._url()} {self.commit or self._branch() or ''}".strip()
        if state.blocked:
            return will_change("clone the repository", state.blocked, after)
        if state.clone is None:
            return will_change("clone the repository", "nothing", after)
        if problem := self._other(state.clone):
            return will_change("clone the repository", problem, after)
        return no_change(f"the repository is there, at {state.clone.sha[:12]}")

    def apply(self, ctx: Context) -> Result:
        """Clone beside the destination, then move.

        Raises:
            Failure: git's, in kinds; Permanent when something else stands at the destination.
        """
        state = self.probe(ctx)
        blocked = state.blocked or (state.clone and self._other(state.clone))
        if blocked:
            raise Permanent(
                f"{self.dest} holds {blocked}; it is left as it is",
                fault="user",
                hint="choose another 'dest', or remove what is there in a task before",
            )
        parent, name = os.path.split(self.dest.rstrip("/"))
        ctx.make_dir(parent)
        temporary = os.path.join(parent, f".{name}.pairun-clone")
        ctx.remove(temporary)  # of an attempt that was interrupted
        try:
            sha = self._clone(ctx, temporary)
            ctx.rename(temporary, self.dest.rstrip("/"))
        except Failure:
            ctx.remove(temporary)
            raise
        return Result(values={"commit": sha}, message=f"cloned at {sha[:12]}")

    def _clone(self, ctx: Context, target: str) -> str:
        """Make the clone; return the commit that is checked out."""
        options = _parsed(self.options)
        if self.branch is not None:
            options.append(("--branch", self.branch))
        if self.depth is not None:
            options.append(("--depth", str(self.depth)))
        if self.commit is not None:
            # Checked out below; submodules belong to that commit, not to the branch's last.
            submodules = ("--recurse-submodules", "--shallow-submodules")
            kept = [option for option in options if option[0] not in submodules]
            words = [*_words(kept), "--no-checkout"]
        else:
            words = _words(options)
        self._git(ctx, ["clone", *words, "--", self._url(), target])
        if self.commit is not None:
            self._check_out(ctx, target, self.commit, options)
        done = self._git(ctx, ["rev-parse", "HEAD"], cwd=target)
        return done.strip()

    def _check_out(
        self, ctx: Context, target: str, commit: str, options: list[tuple[str, str | None]]
    ) -> None:
        names = {name for name, _ in options}
        shallow = ctx.stat(os.path.join(target, ".git", "shallow")) is not None
        if not self._has(ctx, target, commit):
            # A shallow clone, or a commit on no branch: most servers give a full id when asked.
            self._fetch(ctx, target, [*(["--depth", "1"] if shallow else []), "origin", commit])
        if not self._has(ctx, target, commit) and names & {"--depth", "--single-branch"}:
            every = "+refs/heads/*:refs/remotes/origin/*"
            self._fetch(ctx, target, [*(["--unshallow"] if shallow else []), "origin", every])
        if not self._has(ctx, target, commit):
            raise Permanent(
                f"the repository has no commit {commit}",
                fault="user",
                hint="was it pushed, and not rewritten since?",
            )
        self._git(ctx, ["checkout", "--quiet", "--detach", commit], cwd=target)
        if "--recurse-submodules" in names:
            depth = ["--depth", "1"] if "--shallow-submodules" in names else []
            self._git(ctx, ["submodule", "update", "--init", "--recursive", *depth], cwd=target)

    def _has(self, ctx: Context, target: str, commit: str) -> bool:
        return ctx.query(["git", "cat-file", "-e", f"{commit}^{{commit}}"], cwd=target).code == 0

    def _fetch(self, ctx: Context, target: str, words: list[str]) -> None:
        """Fetch if the server gives it; a broken network is a failure, a refusal is an answer."""
        try:
            self._git(ctx, ["fetch", *words], cwd=target)
        except Transient as e:
            if e.fault == "platform":
                raise
        except Permanent:
            pass

    def _git(self, ctx: Context, words: list[str], cwd: str | None = None) -> str:
        """Run git; its messages go to the log, its failure becomes one of a kind."""
        done = ctx.run(["git", *words], env=self._environment(ctx), cwd=cwd, capture=True)
        said = done.stderr.decode("utf-8", "replace")
        for line in re.split("[\r\n]+", said):
            if line.strip():
                ctx.log(line)
        if done.code != 0:
            raise _failure(words[0], done.code, said)
        return done.stdout.decode("utf-8", "replace")

    def _environment(self, ctx: Context) -> dict[str, str | Secret]:
        """No questions, English messages, and the credentials."""
        parts = _http_parts(reveal(self.repo))
        user, password, server = "", "", None
        if parts is not None and "@" in parts.netloc:
            user, password = parts.username or "", parts.password or ""
            server = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        return {
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": ctx.which("true") or "true",
            "GIT_SSH_COMMAND": ctx.env.get("GIT_SSH_COMMAND", "ssh -o BatchMode=yes"),
            "LC_ALL": "C",
            "PAIRUN_GIT_USERNAME": Secret(unquote(user)),
            "PAIRUN_GIT_PASSWORD": Secret(unquote(password)),
            **_settings(server),
        }

    def _url(self) -> str:
        """The address without its credentials."""
        text = reveal(self.repo)
        parts = _http_parts(text)
        if parts is None or "@" not in parts.netloc:
            return text
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))

    def _branch(self) -> str | None:
        return self.branch or dict(_parsed(self.options)).get("--branch")

    def _other(self, clone: _Clone) -> str | None:
        """What is wrong with a clone that is there, in words; None when it is the one asked for."""
        if clone.url not in (self._url(), reveal(self.repo)):
            return "a clone of another repository"
        branch = self._branch()
        if self.commit is not None:
            if not clone.sha.startswith(self.commit.lower()):
                return f"a clone at {clone.sha[:12]}"
        elif branch is not None and clone.ref != f"refs/heads/{branch}" and not clone.tag:
            return f"a clone on {clone.ref or clone.sha[:12]}"
        return None


def _address_problems(repo: str | Secret) -> Iterator[str]:
    text = reveal(repo)
    if not text or text.startswith("-"):
        yield "'repo' must be the address of a repository, not an option"
    elif re.match(r"[A-Za-z0-9][A-Za-z0-9+.-]*::", text):
        yield "'repo' must not name a transport helper (ext::, fd::, …): it could start a program"
    elif any(ord(c) < 32 for c in text):
        yield "'repo' must be one line"
    elif isinstance(repo, Secret) and not ((p := _http_parts(text)) and "@" in p.netloc):
        # Git hands the rest of the address to programs as an argument, which everybody can read.
        yield "a secret in 'repo' must stand before the @ of an http address (https://user:token@…)"


def _http_parts(text: str) -> SplitResult | None:
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    return parts if parts.scheme in ("http", "https") else None


def _parsed(options: Iterable[str]) -> list[tuple[str, str | None]]:
    """The allowed options among free text.

    Raises:
        ValueError: one is not allowed, or lacks its value.
    """
    out: list[tuple[str, str | None]] = []
    words = [word for item in options for word in _split(item)]
    while words:
        word = words.pop(0)
        name, has_value, value = word.partition("=")
        if not word.startswith("--"):
            # -b main and -bmain
            name, value = word[:2], word[2:]
            has_value = value
        if name not in _ALLOWED or (has_value and not _ALLOWED[name][1]):
            raise ValueError(
                f"the option {word!r} of git clone is not allowed; allowed: {_names()}"
            )
        name, takes_value = _ALLOWED[name]
        if takes_value and not has_value:
            value = words.pop(0) if words else ""
        if takes_value and (not value or value.startswith("-")):
            raise ValueError(f"the option {name} of git clone needs a value")
        if name in _NUMBERS and not value.isdecimal():
            raise ValueError(f"the option {name} of git clone needs a number, not {value!r}")
        out.append((name, value if takes_value else None))
    return out


def _split(item: str) -> list[str]:
    try:
        return shlex.split(item)
    except ValueError as e:
        raise ValueError(f"the option {item!r} of git clone cannot be read: {e}") from e


def _names() -> str:
    return ", ".join(_ALLOWED)


def _words(options: Iterable[tuple[str, str | None]]) -> list[str]:
    return [name if value is None else f"{name}={value}" for name, value in options]


def _settings(server: str | None) -> dict[str, str]:
    """Settings that hold for git and all it starts, submodules included (git(1), GIT_CONFIG_COUNT).

    Args:
        server: scheme, host and port to which the credentials may be shown: a submodule or a
            redirection may lead elsewhere.
    """
    settings = [("core.hooksPath", "/dev/null"), ("protocol.ext.allow", "never")]
    if server is not None:
        # The empty one first: no other helper is asked, none is told.
        helper = f"credential.{server}.helper"
        settings += [("credential.helper", ""), (helper, _CREDENTIAL_HELPER)]
    out = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings):
        out[f"GIT_CONFIG_KEY_{number}"] = key
        out[f"GIT_CONFIG_VALUE_{number}"] = value
    return out


def _failure(command: str, code: int, said: str) -> Failure:
    """A failure of the kind that git's own words mean."""
    lines = [line for line in re.split("[\r\n]+", said) if line.strip()]
    lines = [line for line in lines if not line.startswith(("warning:", "hint:"))]
    if code < 0:
        return Transient(f"git {command} was killed by signal {-code}", fault="unknown")
    for pattern, kind, fault, hint in _MEANINGS:
        telling = [line for line in lines if re.search(pattern, line, re.IGNORECASE)]
        if telling:
            return kind(f"git {command} failed: {telling[-1]}", fault=fault, hint=hint)
    last = lines[-1] if lines else f"exit code {code}"
    return Transient(f"git {command} failed: {last}", fault="unknown")


def _read_clone(ctx: Context, dest: str, branch: str | None) -> _Clone | None:
    """What the files of a clone say (gitrepository-layout(5)); no git is run on untrusted files."""

    def text(name: str) -> str:
        path = os.path.join(dest, ".git", name)
        found = ctx.stat(path)
        # No link: it could lead anywhere.
        if found is None or found.kind != "file":
            return ""
        return (ctx.read_file(path, 64 * 1024 * 1024) or b"").decode("utf-8", "replace")

    lines = re.finditer(r"^([0-9a-f]{40,64}) (\S+)$", text("packed-refs"), re.MULTILINE)
    packed = {line[2]: line[1] for line in lines}
    head = text("HEAD").strip()
    ref = head.removeprefix("ref: ") if head.startswith("ref: ") else ""
    if ref and (".." in ref or not ref.startswith("refs/")):
        return None
    sha = (text(ref).strip() or packed.get(ref, "")) if ref else head
    if not re.fullmatch("[0-9a-f]{40,64}", sha):
        return None
    tag = f"refs/tags/{branch}"
    is_tag = bool(branch and not ref and ".." not in tag and (text(tag) or tag in packed))
    return _Clone(_origin(text("config")), ref, sha, is_tag)


def _origin(config: str) -> str:
    """The address of the remote ``origin`` in a git configuration, or empty."""
    section = ""
    for line in map(str.strip, config.splitlines()):
        if line.startswith("["):
            section = line
        elif section == '[remote "origin"]' and (found := re.match(r"url\s*=\s*(.*)", line)):
            return found[1].strip('"')
    return ""

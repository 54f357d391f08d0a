"""Clone a git repository, without trusting the repository, the server, or what stands there."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from pairun.module import (
    Completed,
    Context,
    Duration,
    Failure,
    Fault,
    Permanent,
    Result,
    Secret,
    StateModule,
    TimedOut,
    Transient,
    Verdict,
    arg,
    define,
    is_worth_a_retry,
    no_change,
    retry_after_s,
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
# With the least that each may be; git keeps both as an int of C.
_NUMBERS = {"--depth": 1, "--jobs": 0}
_LARGEST = 2**31 - 1

# What git may speak; a local path only where the repository itself is one.
_PROTOCOLS = ("https", "http", "ssh", "git")

# Variables of git that a task may bring along: they name files with certificates. Every other one
# is taken away, since many start programs (GIT_SSH_COMMAND, GIT_CONFIG_…, GIT_EXTERNAL_DIFF, …).
_KEPT_VARIABLES = ("GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_SSL_CERT", "GIT_SSL_KEY")

_SSH = (
    "ssh -o BatchMode=yes -o ConnectTimeout=30 -o ServerAliveInterval=15 -o ServerAliveCountMax=4"
)

# Answers git's question for a user and a password from the environment of the command, so that
# neither stands in an argument list, in a log or in the clone's configuration (gitcredentials(7)).
_CREDENTIAL_HELPER = (
    '!f() { test "$1" = get && printf "username=%s\\npassword=%s\\n"'
    ' "$PAIRUN_GIT_USERNAME" "$PAIRUN_GIT_PASSWORD"; }; f'
)

_BUSY_S = 20.0
"""What a server that limits requests and names no time is given, before jitter."""

_PROBE_S = 20.0
"""How long the server has to say where a branch stands, when a clone is there already."""


_PROGRESS_S = 10.0
"""The shortest time between two lines of progress in the log."""

_PACKED_REFS = 64 * 1024 * 1024
"""The largest file of a clone that is read."""


class _Meaning(NamedTuple):
    """What words of git mean: what is said about them, and the failure they become."""

    words: str
    sentence: str
    kind: type[Failure]
    fault: Fault
    hint: str | None


# The first match counts, over all lines. git speaks English here, because LC_ALL is C.
_MEANINGS = (
    _Meaning(
        r"returned error: 429|\bHTTP 429\b|rate limit exceeded",
        "the git server limits requests",
        Transient,
        "platform",
        None,
    ),
    _Meaning(
        r"returned error: (408|5\d\d)|\bHTTP 5\d\d\b|from HTTP 5\d\d",
        "the git server has an error of its own",
        Transient,
        "platform",
        None,
    ),
    _Meaning(
        r"could not read (username|password)|terminal prompts disabled",
        "the git server asks who we are, and the address holds no credentials for it",
        Permanent,
        "user",
        "write https://user:token@host/… with the token as a secret, or check the address: "
        "some servers ask so for a repository that does not exist",
    ),
    _Meaning(
        r"returned error: 401|authentication failed|authorization error|authentication required",
        "the git server does not accept the user or the token",
        Permanent,
        "user",
        "check both; has the token expired, and may it read this repository?",
    ),
    _Meaning(
        r"host key verification failed",
        "the ssh server is not known",
        Permanent,
        "user",
        "use https, or ask for its key to be added to the image's known_hosts",
    ),
    _Meaning(
        r"returned error: 403|permission denied \(|access denied|from HTTP 403",
        "the git server knows us, and refuses access",
        Permanent,
        "user",
        "ask the owner of the repository for access, or use a token that may read it",
    ),
    _Meaning(
        r"transport '.*' not allowed|protocol '.*' is not supported|unable to find remote helper"
        r"|remote helper .* aborted",
        "the repository leads to an address of a kind that is not allowed",
        Permanent,
        "user",
        "submodules must have https, http, ssh or git addresses",
    ),
    _Meaning(
        r"no url found for submodule|strange (hostname|pathname|port)|invalid value for 'submodule|suspicious submodule|submodule (url|path|name) looks like"
        r"|looks like a command-line option|refusing to create|invalid path '|disallowed submodule"
        r"|is a symbolic link|beyond a symbolic link|inside git dir|contains a symbolic link"
        r"|symlinked directory",
        "the repository holds something that git refuses as unsafe",
        Permanent,
        "user",
        "look at its .gitmodules and at its paths",
    ),
    _Meaning(
        r"no space left on device|disk quota exceeded",
        "there is no room for the clone",
        Transient,
        "unknown",
        "free space at 'dest', or clone less: depth: 1",
    ),
    _Meaning(
        r"certificate|CAfile|issuer",
        "the git server's certificate is not trusted",
        Permanent,
        "platform",
        "the image of the init container needs the server's certificate authority",
    ),
    _Meaning(
        r"could not resolve|temporary failure in name resolution|name or service not known",
        "the name of the git server is not known",
        Transient,
        "platform",
        "check the spelling of the host's name",
    ),
    _Meaning(
        r"operation too slow|timed out|timeout",
        "the git server stopped answering",
        Transient,
        "platform",
        None,
    ),
    _Meaning(
        r"remote branch .* not found|couldn't find remote ref",
        "there is no such branch or tag",
        Permanent,
        "user",
        "check its spelling; was it merged and deleted?",
    ),
    _Meaning(
        r"is this a git repository|not valid: |redirect",
        "what answers at this address is no git repository",
        Permanent,
        "user",
        "check the address; a page to log in, or a proxy, may stand in between",
    ),
    _Meaning(
        r"repository .* not found|repository not found|repository .* does not exist"
        r"|does not appear to be a git repository|returned error: 404|from HTTP 404",
        "there is no such repository",
        Permanent,
        "user",
        "check the address; a private repository without credentials looks the same",
    ),
    _Meaning(
        r"dubious ownership", "the repository belongs to somebody else", Permanent, "user", None
    ),
    _Meaning(
        r"connection (refused|reset|closed)|failed to connect|couldn't connect|unable to connect"
        r"|network is unreachable|no route to host|empty reply|early eof|unexpected disconnect"
        r"|hung up|rpc failed|transfer closed|invalid index-pack|bad line length|inflate"
        r"|pack (is|has)|expected flush|gnutls|ssl_|ssl routines|SSL/TLS",
        "the connection to the git server broke",
        Transient,
        "platform",
        None,
    ),
)


class _Clone(NamedTuple):
    """What a clone's own files say about it."""

    url: str
    ref: str
    sha: str
    tag: bool


class _State(NamedTuple):
    """What stands at the destination: nothing, a clone, or something else (why, in words).

    ``wanted`` is where the server has the branch now; where that is not known, ``unasked`` says
    why.
    """

    clone: _Clone | None
    blocked: str | None
    wanted: str | None = None
    unasked: str | None = None


class _NoCommit(Permanent):
    """The server does not give a commit."""


@define
class GitClone(StateModule):
    """Clone a git repository, or bring a clone that is there to the wanted state.

    The clone appears at once and complete: it is made beside the destination and moved. A clone
    that is there holds when it is of the same repository and at the wanted commit, or where the
    server has the wanted branch now; when the server cannot be asked, it holds too, and that is
    said. One that is elsewhere is replaced, unless somebody has changed or added a file or made a
    commit in it: then, and when anything else stands there, it is left alone, and that is an error.

    Nothing in the address, the options, the environment or the repository can start a program.
    Credentials in an http address (``https://user:token@host/…``) are shown to that server only,
    and are not kept in the clone. Of git's configuration the system's counts (it is the image's),
    not the home directory's.
    """

    phases = ("init",)
    privileges = "network; may write beside the destination"
    example = "git_clone: {repo: 'https://example.com/a.git', dest: /usr/local/pai/code, depth: 1}"
    # The clone was looked at while it was made; to look again would ask the server again, and it
    # may have moved on since.
    verify = False

    repo: str | Secret = arg("The repository's address.")
    dest: str = arg("Where the clone shall stand; an absolute path.")
    branch: str | None = arg(
        "The branch or tag; the repository's own choice by default.", default=None
    )
    commit: str | None = arg("The commit, in full or at least 4 digits of it.", default=None)
    depth: int | None = arg("How much history to fetch; all by default.", default=None)
    lfs: bool = arg("Fetch what is kept in Git LFS; false leaves the pointers.", default=True)
    stall: Duration = arg("Give up when nothing comes for so long.", default=Duration(60))
    options: list[str] = arg(
        f"Further options of `git clone`, of these: {', '.join(_ALLOWED)}.", factory=list
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
        if self.depth is not None and not 1 <= self.depth <= _LARGEST:
            yield f"'depth' must be at least 1 and at most {_LARGEST}"
        if self.stall < 1:
            yield "'stall' must be at least 1s"
        try:
            given = [name for name, _ in _parsed(self.options)]
        except ValueError as e:
            yield f"'options': {e}"
            return
        for name, value in (("--branch", self.branch), ("--depth", self.depth)):
            if given.count(name) + (value is not None) > 1:
                yield f"'{name[2:]}' is given more than once"

    def probe(self, ctx: Context) -> _State:
        """What stands at the destination, and where the server has the branch.

        Nothing that stands there is executed, and the server is asked only where that decides.
        """
        state = self._look(ctx)
        if state.clone is None or self.commit is not None or not self._ours(state.clone):
            return state
        return self._ask_server(ctx, state)

    def plan(self, state: _State) -> Verdict:
        """Compare the repository, and the commit or the branch."""
        after = f"{self._url()} {self.commit or self._branch() or ''}".strip()
        if state.blocked:
            return will_change("clone the repository", state.blocked, after)
        if state.clone is None:
            return will_change("clone the repository", "nothing", after)
        sha = state.clone.sha
        if not self._ours(state.clone):
            before = "a clone of another repository"
        elif self._elsewhere(state.clone) or state.wanted not in (None, sha):
            before = f"a clone at {sha[:12]}"
            after = f"{after} {state.wanted[:12] if state.wanted else ''}".strip()
        elif state.unasked:
            return no_change(
                f"the repository is there, at {sha[:12]}; whether it has moved on is not known: "
                f"{state.unasked}"
            )
        else:
            return no_change(f"the repository is there, at {sha[:12]}")
        return will_change("bring the clone to the wanted state", before, after)

    def apply(self, ctx: Context) -> Result:
        """Clone beside the destination, then move.

        Raises:
            Failure: git's, in kinds; Permanent when something else stands at the destination.
        """
        state = self._look(ctx)
        blocked = state.blocked
        if state.clone and not self._ours(state.clone):
            blocked = "a clone of another repository"
        if blocked:
            raise self._in_the_way(blocked)
        dest = self.dest.rstrip("/")
        parent, name = os.path.split(dest)
        ctx.make_dir(parent)
        # The first is the clone to be; the others are needed when one is there already.
        new, same, old = (
            os.path.join(parent, f".{name}.pairun-{x}") for x in ("clone", "same", "old")
        )
        for left in (new, same, old):
            ctx.remove(left)  # of an attempt that was interrupted
        try:
            sha = self._clone(ctx, new, self.commit)
            # Goes along when the clone is copied, and tells of which commit the copy is.
            mark = os.path.join(new, ".git", "pairun")
            ctx.write_file(mark, f"{sha} {self._url()}\n".encode("utf-8", "surrogateescape"))
            if state.clone is not None:
                self._require_unchanged(ctx, state.clone, new, same)
                ctx.rename(dest, old)
            try:
                ctx.rename(new, dest)
            except Failure:
                if state.clone is not None:
                    ctx.rename(old, dest)
                raise
        finally:
            for left in (new, same, old):
                ctx.remove(left)
        return Result(values={"commit": sha}, message=f"cloned at {sha[:12]}")

    # --- what is there ---

    def _look(self, ctx: Context) -> _State:
        found = ctx.stat(self.dest)
        if found is None:
            return _State(None, None)
        if found.kind != "directory":
            return _State(None, f"a {found.kind} that is no clone")
        if not ctx.list_dir(self.dest):
            return _State(None, None)
        clone = _read_clone(ctx, self.dest, self._branch())
        return _State(clone, None if clone else "a directory that is not empty and no clone")

    def _ask_server(self, ctx: Context, state: _State) -> _State:
        """Where the server has the branch now; a server that does not say so is no failure."""
        branch = self._branch()
        tag = f"refs/tags/{branch}"
        names = [f"refs/heads/{branch}", f"{tag}^{{}}", tag] if branch else ["HEAD"]
        try:
            done = ctx.query(
                ["git", "ls-remote", "--quiet", "--", self._url(), *names],
                env=self._environment(ctx, min(self.stall, _PROBE_S / 2)),
                cwd="/",
                timeout_s=_PROBE_S,
            )
        except TimedOut:
            return state._replace(unasked="the git server stopped answering")
        if done.code != 0:
            return state._replace(unasked=_failure("ls-remote", done).message)
        pairs = (line.split("\t") for line in done.stdout.decode("utf-8", "replace").splitlines())
        shas = {pair[1]: pair[0] for pair in pairs if len(pair) == 2}
        for name in names:
            if name in shas:
                return state._replace(wanted=shas[name])
        return state._replace(unasked="the git server does not have it any more")

    def _ours(self, clone: _Clone) -> bool:
        return clone.url in (self._url(), reveal(self.repo))

    def _elsewhere(self, clone: _Clone) -> bool:
        """Whether a clone's own files show that it is at another commit or branch."""
        branch = self._branch()
        if self.commit is not None:
            return not clone.sha.startswith(self.commit.lower())
        return branch is not None and clone.ref != f"refs/heads/{branch}" and not clone.tag

    def _require_unchanged(self, ctx: Context, clone: _Clone, new: str, same: str) -> None:
        """Refuse to replace a clone in which somebody has worked.

        It is compared with a clone of the same commit that we made ourselves: git is not started in
        it, because its own configuration could start programs.

        Raises:
            Permanent: it holds commits or files that the server does not have.
        """
        shas = {clone.sha, *_local_shas(ctx, self.dest)}
        for sha in shas:
            if not self._has(ctx, new, sha):
                self._fetch(ctx, new, ["--depth", "1", "origin", sha])
            if not self._has(ctx, new, sha):
                raise self._in_the_way("commits that the git server does not have")
        self._clone(ctx, same, clone.sha)
        there, ours = _tree(ctx, self.dest), _tree(ctx, same)
        if there != ours:
            names = sorted({name for name, _ in there ^ ours})
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            raise self._in_the_way(
                f"files that were changed or added: {', '.join(names[:3])}{more}"
            )
        differ = ctx.query(["diff", "-rq", "--no-dereference", "-x", ".git", self.dest, same])
        if differ.code != 0:
            said = (differ.stdout or differ.stderr).decode("utf-8", "replace").replace(same, "git")
            raise self._in_the_way(f"files that were changed: {said.splitlines()[0]}")

    def _in_the_way(self, what: str) -> Permanent:
        return Permanent(
            f"{self.dest} holds {what}; it is left as it is",
            fault="user",
            hint="choose another 'dest', or save and remove what is there",
        )

    # --- cloning ---

    def _clone(self, ctx: Context, target: str, commit: str | None) -> str:
        """Make the clone; return the commit that is checked out."""
        options = _parsed(self.options)
        if self.branch is not None:
            options.append(("--branch", self.branch))
        if self.depth is not None:
            options.append(("--depth", str(self.depth)))
        if commit is not None:
            # Checked out below; submodules belong to that commit, not to the branch's last.
            submodules = ("--recurse-submodules", "--shallow-submodules")
            kept = [option for option in options if option[0] not in submodules]
            words = [*_words(kept), "--no-checkout"]
        else:
            words = _words(options)
        self._git(ctx, "clone", [*words, "--", self._url(), target], "/")
        if commit is not None:
            self._check_out(ctx, target, commit, dict(options))
        done = self._query(ctx, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"], target)
        if done.code != 0:
            raise Permanent(
                "the repository is empty",
                fault="user",
                hint="push a commit to it, or check its address: does something else answer there?",
            )
        self._require_lfs(ctx, target)
        return done.stdout.decode("ascii", "replace").strip()

    def _check_out(
        self, ctx: Context, target: str, commit: str, options: dict[str, str | None]
    ) -> None:
        shallow = ctx.stat(os.path.join(target, ".git", "shallow")) is not None
        depth = ["--depth", options.get("--depth") or "1"] if shallow else []
        if not self._has(ctx, target, commit) and len(commit) >= 40:
            # A shallow clone, or a commit on no branch: most servers give a full id when asked.
            self._fetch(ctx, target, [*depth, "origin", commit])
        if not self._has(ctx, target, commit) and options.keys() & {"--depth", "--single-branch"}:
            every = "+refs/heads/*:refs/remotes/origin/*"
            self._fetch(ctx, target, [*(["--unshallow"] if shallow else []), "origin", every])
        if not self._has(ctx, target, commit):
            raise self._no_commit(ctx, target, commit)
        self._git(ctx, "checkout", ["--detach", commit], target)
        if "--recurse-submodules" in options:
            words = ["update", "--init", "--recursive"]
            words += ["--depth", "1"] if "--shallow-submodules" in options else []
            words += ["--jobs", options["--jobs"] or "1"] if "--jobs" in options else []
            self._git(ctx, "submodule", words, target)

    def _no_commit(self, ctx: Context, target: str, commit: str) -> Failure:
        said = self._query(ctx, ["rev-parse", f"{commit}^{{commit}}"], target).stderr
        if b"ambiguous" in said and b"unknown revision" not in said:
            sentence, hint = f"the commit {commit} is one of several", "give more digits of it"
        else:
            sentence = f"the repository has no commit {commit}"
            hint = "was it pushed, and not rewritten since? One on no branch needs its full id"
        return _NoCommit(sentence, fault="user", hint=hint)

    def _has(self, ctx: Context, target: str, commit: str) -> bool:
        return self._query(ctx, ["cat-file", "-e", f"{commit}^{{commit}}"], target).code == 0

    def _fetch(self, ctx: Context, target: str, words: list[str]) -> None:
        """Fetch if the server gives it; a broken network is a failure, a refusal is an answer."""
        try:
            self._git(ctx, "fetch", words, target)
        except Transient as e:
            if e.fault == "platform":
                raise
        except Permanent:
            pass

    def _require_lfs(self, ctx: Context, target: str) -> None:
        if not self.lfs or ctx.which("git-lfs") is not None:
            return
        words = ["grep", "-q", "--cached", "-e", "filter=lfs", "--", ":(glob)**/.gitattributes"]
        if self._query(ctx, words, target).code == 0:
            raise Permanent(
                "the repository keeps files in Git LFS, and the program git-lfs is not here",
                fault="platform",
                hint="the image of the init container needs git-lfs; with lfs: false the pointers "
                "are left in the place of the files",
            )

    # --- git ---

    def _query(self, ctx: Context, words: list[str], target: str) -> Completed:
        """Ask a clone that we made ourselves."""
        return ctx.query(["git", *words], env=self._environment(ctx, self.stall), cwd=target)

    def _git(self, ctx: Context, command: str, words: list[str], cwd: str) -> None:
        """Run git; its messages go to the log as they come, its failure becomes one of a kind."""
        progress = [] if "--quiet" in words else ["--progress"]
        if command == "submodule":
            progress, words = [], [words[0], *progress, *words[1:]]
        with open(os.memfd_create("pairun-git-trace"), "rb") as trace:
            env = self._environment(ctx, self.stall)
            # git keeps a server's Retry-After to itself; this file in memory shows the headers of
            # all answers, to git and to all that it starts. Credentials in it are redacted.
            env["GIT_TRACE_CURL"] = f"/proc/{os.getpid()}/fd/{trace.fileno()}"
            env["GIT_TRACE_CURL_NO_DATA"] = env["GIT_TRACE_REDACT"] = "1"
            done = ctx.run(
                ["git", command, *progress, *words],
                env=env,
                cwd=cwd,
                capture=True,
                watch=_Log(ctx).take,
            )
            if done.code != 0:
                headers = trace.read().decode("latin-1")
                raise _failure(command, done, _asked_wait_s(headers, ctx.now()))

    def _environment(self, ctx: Context, stall_s: float) -> dict[str, str | Secret | None]:
        """No questions, English messages, the credentials, and nothing that starts a program."""
        parts = _http_parts(reveal(self.repo))
        user, password, server = "", "", None
        if parts is not None and "@" in parts.netloc:
            user, password = parts.username or "", parts.password or ""
            server = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        foreign = (name for name in ctx.env if name.startswith("GIT_"))
        return {
            **{name: None for name in foreign if name not in _KEPT_VARIABLES},
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "",
            "SSH_ASKPASS": "",
            "GIT_SSH_COMMAND": _SSH,
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_TEMPLATE_DIR": "",
            "GIT_NO_LAZY_FETCH": "1",
            "LC_ALL": "C",
            "PAIRUN_GIT_USERNAME": Secret(unquote(user)),
            "PAIRUN_GIT_PASSWORD": Secret(unquote(password)),
            **_settings(
                server,
                local=_is_local(reveal(self.repo)),
                lfs=self.lfs and ctx.which("git-lfs") is not None,
                stall_s=stall_s,
            ),
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


class _Log:
    """Passes git's messages on as they come, and of its progress a line now and then."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._rest = b""
        self._next = ctx.now() + _PROGRESS_S

    def take(self, data: bytes) -> None:
        """Take what has come."""
        *lines, self._rest = re.split(b"(?<=[\r\n])", self._rest[-65536:] + data)
        for line in lines:
            text = line.decode("utf-8", "replace").strip()
            if line.endswith(b"\r"):
                if self._ctx.now() < self._next:
                    continue
                self._next = self._ctx.now() + _PROGRESS_S
            if text:
                self._ctx.log(text)


def _address_problems(repo: str | Secret) -> Iterator[str]:
    text = reveal(repo)
    scheme = found[1].lower() if (found := re.match("([A-Za-z0-9+.-]+)://", text)) else ""
    if not text or text.startswith("-"):
        yield "'repo' must be the address of a repository, not an option"
    elif re.match(r"[A-Za-z0-9][A-Za-z0-9+.-]*::", text):
        yield "'repo' must not name a transport helper (ext::, fd::, …): it could start a program"
    elif any(ord(c) < 32 for c in text):
        yield "'repo' must be one line"
    elif scheme and scheme not in (*_PROTOCOLS, "file"):
        yield f"'repo' must be an https, http, ssh, git or file address, not {scheme}"
    elif scheme and not _http_parts(text) and re.match("[^/]*//[^/@]*:[^/]*@", text):
        yield "a password in 'repo' works in an http address only; for ssh there are keys"
    elif isinstance(repo, Secret) and not ((p := _http_parts(text)) and "@" in p.netloc):
        # Git hands the rest of the address to programs as an argument, which everybody can read.
        yield "a secret in 'repo' must stand before the @ of an http address (https://user:token@…)"


def _is_local(text: str) -> bool:
    return text.startswith(("/", "file://"))


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
                f"the option {word!r} of git clone is not allowed; allowed: {', '.join(_ALLOWED)}"
            )
        name, takes_value = _ALLOWED[name]
        if takes_value and not has_value:
            value = words.pop(0) if words else ""
        if takes_value and (not value or value.startswith("-")):
            raise ValueError(f"the option {name} of git clone needs a value")
        if name in _NUMBERS and not (
            re.fullmatch("[0-9]{1,10}", value) and _NUMBERS[name] <= int(value) <= _LARGEST
        ):
            raise ValueError(
                f"the option {name} of git clone needs a number from {_NUMBERS[name]} to "
                f"{_LARGEST}, not {value!r}"
            )
        out.append((name, value if takes_value else None))
    return out


def _split(item: str) -> list[str]:
    try:
        return shlex.split(item)
    except ValueError as e:
        raise ValueError(f"the option {item!r} of git clone cannot be read: {e}") from e


def _words(options: Iterable[tuple[str, str | None]]) -> list[str]:
    return [name if value is None else f"{name}={value}" for name, value in options]


def _settings(server: str | None, *, local: bool, lfs: bool, stall_s: float) -> dict[str, str]:
    """Settings that hold for git and all it starts, submodules included (git(1), GIT_CONFIG_COUNT).

    Args:
        server: scheme, host and port to which the credentials may be shown: a submodule or a
            redirection may lead elsewhere.
        local: the repository is a directory of this machine, and its submodules may be.
        lfs: Git LFS is there and wanted.
        stall_s: the longest silence of an http server.
    """
    # The empty one first: no other helper is asked, none is told.
    settings = [("credential.helper", "")]
    if server is not None:
        key = f"credential.{server}.helper"
        settings += [(key, ""), (key, _CREDENTIAL_HELPER)]
    settings += [
        ("core.hooksPath", "/dev/null"),
        ("core.fsmonitor", "false"),
        ("protocol.allow", "never"),
        *((f"protocol.{name}.allow", "always") for name in _PROTOCOLS),
        *((f"protocol.{name}.allow", "never") for name in ("ext", "fd")),
        ("protocol.file.allow", "always" if local else "never"),
        ("http.followRedirects", "initial"),
        ("http.lowSpeedLimit", "1"),
        ("http.lowSpeedTime", str(max(1, round(stall_s)))),
        ("gc.auto", "0"),
        ("maintenance.auto", "false"),
        ("advice.detachedHead", "false"),
        # The one filter that .gitattributes of a repository may name.
        ("filter.lfs.process", "git-lfs filter-process" if lfs else ""),
        ("filter.lfs.clean", "git-lfs clean -- %f" if lfs else ""),
        ("filter.lfs.smudge", "git-lfs smudge -- %f" if lfs else ""),
        ("filter.lfs.required", "true" if lfs else "false"),
        ("lfs.activitytimeout", str(max(1, round(stall_s)))),
    ]
    out = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings):
        out[f"GIT_CONFIG_KEY_{number}"] = key
        out[f"GIT_CONFIG_VALUE_{number}"] = value
    return out


def _failure(command: str, done: Completed, asked_wait_s: float | None = None) -> Failure:
    """A failure of the kind that git's own words mean."""
    if done.code < 0:
        return Transient(f"git {command} was killed by signal {-done.code}", fault="unknown")
    said = re.split("[\r\n]+", done.stderr.decode("utf-8", "replace"))
    # What the server says about itself (remote:) is for people.
    lines = [x for x in said if x.strip() and not x.startswith(("warning:", "hint:", "remote:"))]
    for meaning in _MEANINGS:
        for line in reversed(lines):
            # An address in it is somebody's words, not git's.
            if not re.search(meaning.words, re.sub(r"\w+://\S+", "…", line), re.IGNORECASE):
                continue
            wait = asked_wait_s if issubclass(meaning.kind, Transient) else None
            if wait is None and meaning is _MEANINGS[0]:
                wait = _BUSY_S
            return meaning.kind(
                f"{meaning.sentence} (git {command}: {_plain(line)})",
                fault=meaning.fault,
                hint=meaning.hint,
                retry_after_s=wait,
            )
    last = _plain(lines[-1]) if lines else f"exit code {done.code}"
    return Transient(f"git {command} failed: {last}", fault="unknown")


def _plain(line: str) -> str:
    return re.sub("^(fatal|error): ", "", line.strip())


def _asked_wait_s(headers: str, now: float) -> float | None:
    """Seconds that the last answer of a server asked for, when it is worth a retry.

    Args:
        headers: git's trace of what was sent and received.
        now: seconds since the epoch; the other form is a date (RFC 9110, 10.2.3).
    """
    status, value = 0, None
    for line in re.finditer(
        r"<= Recv header: (?:HTTP/[\d.]+ (\d+)|retry-after: *([^\r\n]*))", headers, re.IGNORECASE
    ):
        if line[1]:
            status, value = int(line[1]), None
        elif is_worth_a_retry(status):
            value = line[2].strip()
    return retry_after_s(value, now)


def _tree(ctx: Context, path: str) -> set[tuple[str, str]]:
    """Every path of a working tree, with its type and whether it may be executed."""
    words = ["-name", ".git", "-prune", "-o", "-printf", "%P %y %m\\0"]
    out = ctx.query(["find", path, *words]).stdout.decode("utf-8", "replace")
    found = set()
    for entry in filter(None, out.split("\0")):
        name, kind, mode = entry.rsplit(" ", 2)
        runs = kind == "f" and int(mode, 8) & 0o100
        found.add((name, kind + ("x" if runs else "")))
    return found


def _local_shas(ctx: Context, dest: str) -> set[str]:
    """The commits of the branches of a clone, and of what was stashed in it."""
    shas = set()
    places = [os.path.join(dest, ".git", "refs", name) for name in ("heads", "stash")]
    while places:
        place = places.pop()
        found = ctx.stat(place)
        if found is not None and found.kind == "directory":
            places += [os.path.join(place, name) for name in ctx.list_dir(place) or []]
        elif found is not None and found.kind == "file":
            shas.add((ctx.read_file(place) or b"").decode("ascii", "replace").strip())
    packed = ctx.stat(os.path.join(dest, ".git", "packed-refs"))
    if packed is not None and packed.kind == "file":
        text = ctx.read_file(os.path.join(dest, ".git", "packed-refs"), _PACKED_REFS) or b""
        shas |= {
            x.decode() for x in re.findall(rb"(?m)^([0-9a-f]{40,64}) refs/(?:heads/|stash$)", text)
        }
    return {sha for sha in shas if re.fullmatch("[0-9a-f]{40,64}", sha)}


def _read_clone(ctx: Context, dest: str, branch: str | None) -> _Clone | None:
    """What the files of a clone say (gitrepository-layout(5)); no git is run on untrusted files."""

    def text(name: str) -> str:
        path = os.path.join(dest, ".git", name)
        found = ctx.stat(path)
        # No link: it could lead anywhere.
        if found is None or found.kind != "file":
            return ""
        return (ctx.read_file(path, _PACKED_REFS) or b"").decode("utf-8", "replace")

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

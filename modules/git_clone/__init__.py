"""Clone a git repository, without trust in the repository, the server or the destination."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from pairun.module import (
    Context,
    Duration,
    Failure,
    Permanent,
    Result,
    Secret,
    StateModule,
    TimedOut,
    Verdict,
    arg,
    define,
    no_change,
    reveal,
    will_change,
)

from .address import address_problems, plain_url
from .cloning import Cloner
from .existing import Destination, ExistingClone, local_commits, read_clone, working_tree
from .meanings import failure_of
from .options import ALLOWED, LARGEST, parse_options
from .program import Git

_PROBE_S = 20.0
"""Seconds in which the server must name a branch's commit, if a clone exists."""

_NAMED = 3
"""The maximum number of changed files that a message names."""


@define
class GitClone(StateModule):
    """Clone a git repository, or update an existing clone.

    The clone appears complete or not at all: it is made beside the destination and then moved. An
    existing clone stays if it is of the same repository and at the commit of the task, or at the
    server's commit of the branch; if the server does not answer, it stays too, and the log says
    so. Any other clone of the repository is replaced, unless it holds changed files, new files or
    new commits. In that case, and if anything else is at the destination, the task fails and
    changes nothing.

    Nothing in the address, the options, the environment or the repository can start a program.
    Credentials in an http address (``https://user:token@host/…``) are only for that server, and
    are not kept in the clone. git reads the image's configuration, and no home directory's.
    """

    phases = ("init",)
    privileges = "network; may write beside the destination"
    example = "git_clone: {repo: 'https://example.com/a.git', dest: /usr/local/pai/code, depth: 1}"
    # `apply` checks the clone. A second probe would ask the server again, and its branch may have
    # moved on.
    verify = False

    repo: str | Secret = arg("The repository's address.")
    dest: str = arg("Where to clone to; an absolute path.")
    branch: str | None = arg(
        "The branch or tag; the repository's default branch by default.", default=None
    )
    commit: str | None = arg("The commit, in full or at least 4 digits of it.", default=None)
    depth: int | None = arg("How much history to fetch; all by default.", default=None)
    lfs: bool = arg("Fetch the files in Git LFS; false leaves the pointers.", default=True)
    stall: Duration = arg("Fail when the server sends nothing for so long.", default=Duration(60))
    options: list[str] = arg(
        f"More options of `git clone`, of these: {', '.join(ALLOWED)}.", factory=list
    )

    def require(self) -> Iterator[str]:
        """No argument can start a program, and no option is given twice."""
        yield from address_problems(self.repo)
        if not os.path.isabs(self.dest) or os.path.normpath(self.dest) in ("/", "//"):
            yield f"'dest' must be an absolute path below the root, not {self.dest!r}"
        if self.commit is not None and not re.fullmatch("[0-9a-fA-F]{4,64}", self.commit):
            yield "'commit' must be at least 4 hexadecimal digits; a branch or tag goes to 'branch'"
        if self.branch is not None and (not self.branch or self.branch.startswith("-")):
            yield f"'branch' must be the name of a branch or tag, not {self.branch!r}"
        if self.depth is not None and not 1 <= self.depth <= LARGEST:
            yield f"'depth' must be at least 1 and at most {LARGEST}"
        if self.stall < 1:
            yield "'stall' must be at least 1s"
        try:
            given = [name for name, _ in parse_options(self.options)]
        except ValueError as e:
            yield f"'options': {e}"
            return
        for name, value in (("--branch", self.branch), ("--depth", self.depth)):
            if given.count(name) + (value is not None) > 1:
                yield f"'{name[2:]}' is given more than once"

    def writes(self) -> list[str]:
        """The clone that it writes."""
        return [self.dest]

    def probe(self, ctx: Context) -> Destination:
        """Read the destination, and get the server's commit of the branch.

        Executes nothing at the destination. Asks the server only if its answer matters.
        """
        state = self._look(ctx)
        if state.clone is None or self.commit is not None or not self._is_ours(state.clone):
            return state
        return self._ask_server(ctx, state)

    def plan(self, state: Destination) -> Verdict:
        """Compare the repository, and the commit or the branch."""
        after = f"{self._url()} {self.commit or self._branch() or ''}".strip()
        if state.blocked:
            return will_change("clone the repository", state.blocked, after)
        if state.clone is None:
            return will_change("clone the repository", "nothing", after)
        sha = state.clone.sha
        if not self._is_ours(state.clone):
            before = "a clone of another repository"
        elif self._is_elsewhere(state.clone) or state.latest not in (None, sha):
            before = f"a clone at {sha[:12]}"
            after = f"{after} {state.latest[:12] if state.latest else ''}".strip()
        elif state.unasked:
            return no_change(
                f"the clone exists, at {sha[:12]}; cannot check for newer commits: {state.unasked}"
            )
        else:
            return no_change(f"the clone exists, at {sha[:12]}")
        return will_change("update the clone", before, after)

    def apply(self, ctx: Context) -> Result:
        """Clone next to the destination, then move.

        Raises:
            Failure: git fails.
            Permanent: the destination holds something else.
        """
        state = self._look(ctx)
        blocked = state.blocked
        if state.clone and not self._is_ours(state.clone):
            blocked = "a clone of another repository"
        if blocked:
            raise self._in_the_way(blocked)
        parent, name = os.path.split(self.dest.rstrip("/"))
        ctx.make_dir(parent)
        # `same` and `old` are needed only to replace an existing clone.
        new, same, old = (
            os.path.join(parent, f".{name}.pairun-{x}") for x in ("clone", "same", "old")
        )
        for leftover in (new, same, old):
            ctx.remove(leftover)  # of an interrupted attempt
        try:
            sha = self._replace(ctx, state.clone, new, same, old)
        finally:
            for leftover in (new, same, old):
                ctx.remove(leftover)
        return Result(values={"commit": sha}, message=f"cloned at {sha[:12]}")

    def _replace(
        self, ctx: Context, existing: ExistingClone | None, new: str, same: str, old: str
    ) -> str:
        """Clone to ``new`` and move it to the destination; return the commit."""
        dest, cloner = self.dest.rstrip("/"), self._cloner(ctx)
        sha = cloner.clone(new, self.commit)
        # A copy of the clone keeps this file, which identifies the copy's commit.
        mark = os.path.join(new, ".git", "pairun")
        ctx.write_file(mark, f"{sha} {self._url()}\n".encode("utf-8", "surrogateescape"))
        if existing is not None:
            self._require_unchanged(ctx, cloner, existing, new, same)
            ctx.rename(dest, old)
        try:
            ctx.rename(new, dest)
        except Failure:
            if existing is not None:
                ctx.rename(old, dest)
            raise
        return sha

    def _look(self, ctx: Context) -> Destination:
        stat = ctx.stat(self.dest)
        if stat is None:
            return Destination(None, None)
        if stat.kind != "directory":
            return Destination(None, f"a {stat.kind} that is not a clone")
        if not ctx.list_dir(self.dest):
            return Destination(None, None)
        clone = read_clone(ctx, self.dest, self._branch())
        return Destination(
            clone, None if clone else "a directory that is not empty and not a clone"
        )

    def _ask_server(self, ctx: Context, state: Destination) -> Destination:
        """The server's commit of the branch; if the server does not respond, the reason."""
        branch = self._branch()
        tag = f"refs/tags/{branch}"
        names = [f"refs/heads/{branch}", f"{tag}^{{}}", tag] if branch else ["HEAD"]
        try:
            done = self._git(ctx).list_remote(names, _PROBE_S)
        except TimedOut:
            return state._replace(unasked="the git server stopped answering")
        if done.code != 0:
            return state._replace(unasked=failure_of("ls-remote", done).message)
        pairs = (line.split("\t") for line in done.stdout.decode("utf-8", "replace").splitlines())
        shas = {pair[1]: pair[0] for pair in pairs if len(pair) == 2}
        for name in names:
            if name in shas:
                return state._replace(latest=shas[name])
        return state._replace(unasked="the git server no longer has it")

    def _is_ours(self, clone: ExistingClone) -> bool:
        return clone.url in (self._url(), reveal(self.repo))

    def _is_elsewhere(self, clone: ExistingClone) -> bool:
        """Whether the files of a clone show another commit or branch."""
        branch = self._branch()
        if self.commit is not None:
            return not clone.sha.startswith(self.commit.lower())
        return branch is not None and clone.ref != f"refs/heads/{branch}" and not clone.tag

    def _require_unchanged(
        self, ctx: Context, cloner: Cloner, existing: ExistingClone, new: str, same: str
    ) -> None:
        """Refuse to replace a clone with uncommitted or unpushed work.

        Compares it with our own clone of the same commit. git does not run in it, because its
        configuration could start programs.

        Raises:
            Permanent: it holds commits or files that the server does not have.
        """
        for sha in {existing.sha, *local_commits(ctx, self.dest)}:
            if not cloner.has(new, sha):
                cloner.fetch(new, ["--depth", "1", "origin", sha])
            if not cloner.has(new, sha):
                raise self._in_the_way("commits that the git server does not have")
        cloner.clone(same, existing.sha)
        theirs, ours = working_tree(ctx, self.dest), working_tree(ctx, same)
        if theirs != ours:
            names = sorted({name for name, _ in theirs ^ ours})
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            listed = ", ".join(names[:_NAMED]) + more
            raise self._in_the_way(f"files that were changed or added: {listed}")
        differ = ctx.query(["diff", "-rq", "--no-dereference", "-x", ".git", self.dest, same])
        if differ.code != 0:
            output = (differ.stdout or differ.stderr).decode("utf-8", "replace")
            first = output.replace(same, "git").splitlines()[0]
            raise self._in_the_way(f"files that were changed: {first}")

    def _in_the_way(self, what: str) -> Permanent:
        return Permanent(
            f"{self.dest} holds {what}; pairun does not change it",
            fault="user",
            hint="choose another 'dest', or save and remove the existing clone",
        )

    def _git(self, ctx: Context) -> Git:
        return Git(ctx, reveal(self.repo), lfs=self.lfs, stall_s=self.stall)

    def _cloner(self, ctx: Context) -> Cloner:
        options = parse_options(self.options)
        if self.branch is not None:
            options.append(("--branch", self.branch))
        if self.depth is not None:
            options.append(("--depth", str(self.depth)))
        return Cloner(ctx, self._git(ctx), self._url(), options, lfs=self.lfs)

    def _url(self) -> str:
        """The address without its credentials."""
        return plain_url(reveal(self.repo))

    def _branch(self) -> str | None:
        return self.branch or dict(parse_options(self.options)).get("--branch")

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
        new, same, old = places = [
            os.path.join(parent, f".{name}.pairun-{x}") for x in ("clone", "same", "old")
        ]
        _remove(ctx, places)  # of an interrupted attempt
        try:
            cloner = self._cloner(ctx)
            sha = cloner.clone(new, self.commit)
            # A copy of the clone keeps this file, which identifies the copy's commit.
            mark = os.path.join(new, cloner.own, "pairun")
            ctx.write_file(mark, f"{sha} {self._url()}\n".encode("utf-8", "surrogateescape"))
            if state.clone is not None:
                self._require_unchanged(ctx, cloner, state.clone, new, same)
            self._move(ctx, new, old if state.clone is not None else None)
        finally:
            _remove(ctx, places)
        return Result(values={"commit": sha}, message=f"cloned at {sha[:12]}")

    def _move(self, ctx: Context, new: str, old: str | None) -> None:
        """Move the clone to the destination; an existing one to ``old``, and back on failure."""
        dest = self.dest.rstrip("/")
        if old is not None:
            ctx.rename(dest, old)
        try:
            ctx.rename(new, dest)
        except Failure:
            if old is not None:
                ctx.rename(old, dest)
            raise

    def _look(self, ctx: Context) -> Destination:
        stat = ctx.stat(self.dest)
        if stat is not None and stat.kind != "directory":
            return Destination(None, f"a {stat.kind} that is not a clone")
        if stat is None or not ctx.list_dir(self.dest):
            return Destination(None, None)
        cloner = self._cloner(ctx)
        folder = os.path.join(self.dest, cloner.own)
        clone = read_clone(ctx, folder, cloner.remote, self._branch())
        blocked = None if clone else "a directory that is not empty and not a clone"
        return Destination(clone, blocked)

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
        for sha in {existing.sha, *local_commits(ctx, os.path.join(self.dest, cloner.own))}:
            if not cloner.has(new, sha):
                cloner.fetch(new, ["--depth", "1", cloner.remote, sha])
            if not cloner.has(new, sha):
                raise self._in_the_way("commits that the git server does not have")
        if not cloner.own:
            return
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
        message = f"{self.dest} holds {what}; pairun does not change it"
        hint = "choose another 'dest', or save and remove the existing clone"
        return Permanent(message, fault="user", hint=hint)

    def _git(self, ctx: Context) -> Git:
        lazy = "--filter" in dict(self._options())
        return Git(ctx, reveal(self.repo), lfs=self.lfs, stall_s=self.stall, lazy=lazy)

    def _cloner(self, ctx: Context) -> Cloner:
        return Cloner(ctx, self._git(ctx), self._options(), lfs=self.lfs)

    def _options(self) -> list[tuple[str, str | None]]:
        """The options of ``git clone``, with those that are arguments of the task."""
        depth = None if self.depth is None else str(self.depth)
        given = (("--branch", self.branch), ("--depth", depth))
        return [*parse_options(self.options), *(option for option in given if option[1])]

    def _url(self) -> str:
        """The address without its credentials."""
        return plain_url(reveal(self.repo))

    def _branch(self) -> str | None:
        return dict(self._options()).get("--branch")


def _remove(ctx: Context, places: list[str]) -> None:
    for place in places:
        ctx.remove(place)

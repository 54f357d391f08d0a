"""Makes a clone."""

from __future__ import annotations

import os

from pairun.module import Context, Failure, Permanent, Transient

from .options import option_words
from .program import Git

_SUBMODULES = {"--recurse-submodules", "--shallow-submodules", "--remote-submodules",
               "--also-filter-submodules"}  # fmt: skip
_PARTIAL = {"--depth", "--shallow-since", "--shallow-exclude", "--single-branch"}


class Cloner:
    """Makes clones of one repository.

    Args:
        lfs: whether the files in Git LFS must be fetched.

    Attributes:
        own: the path of git's own files inside a clone: empty in one without a working tree.
        remote: the name of the remote that is cloned.
    """

    def __init__(
        self, ctx: Context, git: Git, options: list[tuple[str, str | None]], *, lfs: bool
    ) -> None:
        self._ctx, self._git, self._options, self._lfs = ctx, git, options, lfs
        given = dict(options)
        self.own = "" if {"--bare", "--mirror"} & given.keys() else ".git"
        self.remote = given.get("--origin") or "origin"

    def clone(self, target: str, commit: str | None) -> str:
        """Make a clone; return the commit that is checked out.

        Args:
            commit: the commit to check out; None for the branch's last one.

        Raises:
            Failure: git fails, or the repository lacks the branch or commit.
        """
        words = option_words(self._options)
        if commit is not None:
            # `_check_out` fetches submodules: they belong to that commit, not to the branch's last.
            kept = [option for option in self._options if option[0] not in _SUBMODULES]
            words = [*option_words(kept), "--no-checkout"]
        self._git.run("clone", [*words, "--", self._git.url, target], "/")
        if commit is not None:
            self._check_out(target, commit)
        done = self._git.query(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"], target)
        if done.code != 0:
            message = "the repository is empty"
            raise Permanent(message, fault="user", hint="push a commit to it, or check its address")
        self._require_lfs(target)
        return done.stdout.decode("ascii", "replace").strip()

    def _check_out(self, target: str, commit: str) -> None:
        options = dict(self._options)
        shallow = self._ctx.stat(os.path.join(target, self.own, "shallow")) is not None
        depth = ["--depth", options.get("--depth") or "1"] if shallow else []
        if not self.has(target, commit) and len(commit) >= 40:
            # A shallow clone, or a commit on no branch: most servers send a full id.
            self.fetch(target, [*depth, self.remote, commit])
        if not self.has(target, commit) and options.keys() & _PARTIAL:
            every = f"+refs/heads/*:refs/remotes/{self.remote}/*"
            self.fetch(target, [*(["--unshallow"] if shallow else []), self.remote, every])
        if not self.has(target, commit):
            raise self._no_commit(target, commit)
        if not self.own or "--no-checkout" in options:
            self._git.run("update-ref", ["--no-deref", "HEAD", f"{commit}^{{commit}}"], target)
            return
        self._git.run("checkout", ["--detach", commit], target)
        if "--recurse-submodules" in options:
            words = ["update", "--init", "--recursive"]
            words += ["--remote"] if "--remote-submodules" in options else []
            words += ["--depth", "1"] if "--shallow-submodules" in options else []
            words += ["--jobs", options["--jobs"] or "1"] if "--jobs" in options else []
            self._git.run("submodule", words, target)

    def _no_commit(self, target: str, commit: str) -> Failure:
        errors = self._git.query(["rev-parse", f"{commit}^{{commit}}"], target).stderr
        if b"ambiguous" in errors and b"unknown revision" not in errors:
            message, hint = f"the commit {commit} is ambiguous", "give more digits"
        else:
            message = f"the repository has no commit {commit}"
            hint = "check that it was pushed and not rewritten; a commit on no branch needs its full id"
        return Permanent(message, fault="user", hint=hint)

    def has(self, target: str, commit: str) -> bool:
        """Whether a clone has a commit."""
        return self._git.query(["cat-file", "-e", f"{commit}^{{commit}}"], target).code == 0

    def fetch(self, target: str, words: list[str]) -> None:
        """Fetch what the server gives; ignores a refusal, but not a broken network.

        Raises:
            Transient: the server cannot be reached.
        """
        try:
            self._git.run("fetch", words, target)
        except Transient as e:
            if e.fault == "platform":
                raise
        except Permanent:
            pass

    def _require_lfs(self, target: str) -> None:
        if not self._lfs or self._git.lfs:
            return
        words = ["grep", "-q", "--cached", "-e", "filter=lfs", "--", ":(glob)**/.gitattributes"]
        if self._git.query(words, target).code == 0:
            raise Permanent(
                "the repository keeps files in Git LFS, and the program git-lfs is missing",
                fault="platform",
                hint="the image of the init container needs git-lfs; with lfs: false the pointers "
                "are left in the place of the files",
            )

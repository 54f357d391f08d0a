"""An sshd for the container, with the keys of the job and of people, and aliases for its peers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

from pairun.module import (
    Context,
    Permanent,
    Result,
    Secret,
    Skip,
    StateModule,
    Verdict,
    arg,
    define,
    differing_files,
    no_change,
    will_change,
)

from .files import all_files
from .keys import job_pair, keys_of_people
from .peers import ssh_peers
from .server import find_programs, is_running, search_path, ssh_folder, start_sshd


class _State(NamedTuple):
    """The files that the task needs.

    Attributes:
        needed: content and mode by name.
        differing: the names of those that are missing or differ.
        running: whether the sshd runs.
        complaints: what was omitted, as sentences.
    """

    needed: Mapping[str, tuple[bytes, int]]
    differing: list[str]
    running: bool
    complaints: tuple[str, ...]


@define
class SshSetup(StateModule):
    """Start an sshd with the keys of the job and its user, and set aliases of the other instances.

    Everything is in ``run/ssh`` on the shared volume: configuration, host key, the job's key, the
    aliases ``<role>-<index>``. Nothing in the image changes. Only keys allow a login.
    """

    phases = ("runtime",)
    privileges = "any user: as root, root may log in; else only that user, on a port above 1024"
    example = "ssh_setup: {jobssh: true}"
    tools: ClassVar[tuple[str, ...]] = ("sshd", "ssh-session", "ssh/ssh", "ssh/scp", "ssh/sftp")

    jobssh: Any = arg(
        "Whether the instances of the job may reach each other by ssh.", default=False
    )
    userssh: Any = arg("Keys of people: {type: custom, value: public keys}.", default=None)
    saved_keys: Any = arg("The user's stored keys: a list of {value: public keys}.", default=None)
    private_key: Secret | None = arg("The job's private key.", default=None)
    public_key: str | None = arg("The public key that belongs to it.", default=None)

    def require(self) -> Iterator[str]:
        """A key pair has both parts."""
        if (self.private_key is None) != (not self.public_key):
            yield "'private_key' and 'public_key' go together"

    def probe(self, ctx: Context) -> _State:
        """Read the needed files' current state, and check whether the sshd runs."""
        complaints: list[str] = []
        people = keys_of_people(ctx, self.userssh, self.saved_keys, complaints)
        job_ssh = _is_true(self.jobssh)
        if not job_ssh and not people:
            if complaints:
                raise Skip(f"no user could log in: {'; '.join(complaints)}")
            raise Skip("neither keys of users nor ssh between the instances are set")
        programs = find_programs(ctx)
        port = ctx.env.get("PAI_CONTAINER_SSH_PORT", "")
        if not port.isdigit():
            reason = "this instance has no port with the label ssh (PAI_CONTAINER_SSH_PORT)"
            if job_ssh:
                hint = "give the role's resourcePerInstance.ports a label ssh"
                raise Permanent(reason, hint=hint)
            raise Skip(reason)
        pair = None
        if job_ssh:
            pair = job_pair(ctx, self.private_key, self.public_key, complaints)
            if pair is not None:
                ctx.hide([pair[0].decode("utf-8", "surrogateescape")])
        peers = list(ssh_peers(ctx, complaints)) if job_ssh else []
        needed = dict(all_files(ctx, programs, int(port), pair, people, peers))
        differing = differing_files(ctx, ssh_folder(ctx), needed)
        return _State(needed, differing, is_running(ctx), tuple(complaints))

    def plan(self, state: _State) -> Verdict:
        """Compare every file, and check the sshd."""
        if not state.differing and state.running:
            return no_change("sshd runs with these keys and aliases")
        parts = [f"write {', '.join(state.differing)}"] if state.differing else []
        return will_change(" and ".join([*parts, *([] if state.running else ["start sshd"])]))

    def apply(self, ctx: Context) -> Result:
        """Write files that differ, start the sshd, and wait until it responds."""
        state = self.probe(ctx)
        for line in state.complaints:
            ctx.log(line)
        folder, port = ssh_folder(ctx), int(ctx.env["PAI_CONTAINER_SSH_PORT"])
        for part in ("", "empty", "bin"):
            ctx.make_dir(os.path.join(folder, part))
            ctx.set_mode(os.path.join(folder, part), 0o755)
        for name in state.differing:
            ctx.write_file(os.path.join(folder, name), *state.needed[name])
        programs = find_programs(ctx)
        if not state.running:
            start_sshd(ctx, programs, port)
        values = {"port": port, "config": os.path.join(folder, "config")}
        path = search_path(ctx, programs)
        changed = {"PATH": path} if path != ctx.env.get("PATH") else {}
        return Result(values=values, environment=changed, message=f"sshd answers on port {port}")


def _is_true(value: Any) -> bool:
    return value is True or (isinstance(value, str) and value.strip().lower() == "true")

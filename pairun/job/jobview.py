"""The name ``job`` in the expressions of playbooks."""

from __future__ import annotations

from typing import Any

from pairun.job.model import Job, Prerequisite, Role
from pairun.job.templates import render_secrets, user_command
from pairun.module import Secret, reveal
from pairun.playbook.document.reading import Node
from pairun.playbook.document.scalars import js_text


def job_context(
    job: Job, role: Role, *, gang: bool | None = None, command: str | None = None
) -> dict[str, Any]:
    """A job, from the view of one of its roles, as plain data; secret values as `Secret`.

    Args:
        gang: whether all tasks start together; as in the job by default.
        command: the user's command if the platform has rendered it (``USER_CMD``); rendered here
            by default. Secrets are inserted in both cases.
    """
    text = user_command(job, role) if command is None else command
    asked, uri = role.resources, role.image.node.get("uri")
    return {
        "name": job.name,
        "user": job.user,
        "virtual_cluster": job.virtual_cluster,
        "gang": job.gang if gang is None else gang,
        "retry_count": job.retry_count,
        "role": {
            "name": role.name,
            "fc_name": role.fc_name,
            "instances": role.instances,
            "min_failed": role.min_failed,
            "min_succeeded": role.min_succeeded,
            "ports": dict(asked.ports),
            "resources": {
                "cpu": asked.cpu,
                "memory_mb": asked.memory_mb,
                "gpu": asked.gpu,
                "shm_mb": asked.shm_mb,
                "infiniband": asked.infiniband,
            },
        },
        "roles": job.role_list,
        "storages": [s.name for s in job.storages],
        "volumes": [s.path for s in job.storages],
        "image": {"uri": uri.value if uri else "", "auth": image_login(job, role.image)},
        "user_command": render_secrets(text, job.secrets),
    }


def image_login(job: Job, image: Prerequisite) -> dict[str, str | Secret | None] | None:
    """The login of an image's registry; None if the job has none."""
    auth = image.node.get("auth")
    if auth is None:
        return None
    password = _field(job, auth, "password")
    return {
        "username": _field(job, auth, "username"),
        # Also a password that the job has in plain text.
        "password": None if password is None else Secret(reveal(password)),
        "registry": _field(job, auth, "registryuri"),
    }


def _field(job: Job, auth: Node, key: str) -> str | Secret | None:
    field = auth.get(key)
    return None if field is None else render_secrets(js_text(field.value), job.secrets)

"""What the pages on modules and plugins add to what the code knows: guides, and examples of plugins."""

from __future__ import annotations

GUIDES = {
    "barrier": "gang.md",
    "cache_clean": "storage.md#caches-that-blobfuse-leaves-on-nodes",
    "gang_environment": "inject.md#a-gang-that-starts-together",
    "git": "git.md",
    "git_clone": "git.md",
    "hold": "pid1.md#keep-a-failed-container",
    "mount_storage": "storage.md",
    "openpai_plugin": "moving.md#plugins-of-your-own",
    "ssh": "ssh.md",
    "ssh_barrier": "ssh.md#the-barrier",
    "ssh_setup": "ssh.md",
    "storage_config": "storage.md#openpais-team-storage",
    "teamwise_storage": "storage.md#openpais-team-storage",
    "user_command": "pid1.md",
    "volume_check": "storage.md#volumes",
}
"""The page of `docs` that shows how to use a module or a plugin."""

PLUGINS = {
    "cmd": "{preCommands: [nvidia-smi], postCommands: [./upload.sh]}",
    "dind": '{options: ["--mtu=1450"]}',
    "git": "{repo_uri: https://git.example.com/team/train.git, branch: main, clone_dir: /code}",
    "ssh": "{jobssh: true, sshbarrier: true}",
    "teamwise_storage": "{storageConfigNames: [team-data], mount: true}",
    "tensorboard": "{port: 6006, logdir: {path: /mnt/tensorboard}}",
}
"""Parameters of each plugin, as a job writes them."""

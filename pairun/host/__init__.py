"""The changes that a module may make to a machine: files, commands, mounts, ports, archives."""

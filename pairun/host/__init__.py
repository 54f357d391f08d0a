"""What a module may do to a machine: files, commands, mounts, ports, archives."""

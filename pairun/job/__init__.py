"""What a job file says, as a Job and a Cluster: roles, plugins, ports, environment."""

"""What no sink may show: the type of a secret, the forms it takes, and what looks like one."""

"""What output must not show: the type of a secret, its written forms, and how to detect one."""

"""The job: read from text, checked, and planned for each of its roles."""

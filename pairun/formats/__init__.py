"""Dialects of text: js-yaml, mustache, Go's regular expressions, YARN jobs, stored Frameworks."""

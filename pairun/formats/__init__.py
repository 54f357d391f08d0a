"""Dialects of text: mustache, Go's regular expressions, jobs of the YARN era, stored Frameworks."""

"""Renderers of reviews and of the journal."""

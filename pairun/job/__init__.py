"""Reads a job from text, checks it, and plans each of its roles."""

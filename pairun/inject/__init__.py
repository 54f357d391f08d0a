"""Puts pairun into the Pod templates of any manifest: edits its text in place, and keeps the rest."""

"""Puts pairun into the Pod templates of any manifest: edits the text in place, keeps the rest."""

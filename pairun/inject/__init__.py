"""pairun in the Pod templates of any manifest: the text is edited in place, and never written anew."""

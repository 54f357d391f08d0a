"""OpenPAI's platform: converts Framework and plain Pod to `Job`, environment and exit spec."""

"""OpenPAI's platform: Framework and plain Pod to `Job`, environment, exit spec."""

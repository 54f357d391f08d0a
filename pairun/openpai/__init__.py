"""OpenPAI's platform: Frameworks, the variables it sets, its exit spec."""

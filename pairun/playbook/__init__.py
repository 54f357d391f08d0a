"""Text to plan: read with positions, validate, layer, patch, check policy, template."""

"""What the journals of a run say."""

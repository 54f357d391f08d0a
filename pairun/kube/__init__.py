"""What the objects of a cluster mean."""

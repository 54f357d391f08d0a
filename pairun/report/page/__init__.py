"""Reports and reviews as one HTML file."""

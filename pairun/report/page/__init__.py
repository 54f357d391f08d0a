"""What happened to a job as one HTML file, to look at."""

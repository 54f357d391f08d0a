"""What other content roots change for a job."""

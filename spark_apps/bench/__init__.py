"""What `headwater bench capture` runs: the same jobs with and without provenance. Imports the capture SDK."""

"""What waits without a worker."""

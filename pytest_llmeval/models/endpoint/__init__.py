"""What stands behind ``openai:``: one request with its retries, and many of them at once."""

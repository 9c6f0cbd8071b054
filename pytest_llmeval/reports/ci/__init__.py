"""What CI services read: annotations, summaries, code quality."""

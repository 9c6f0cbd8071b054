"""Reports in the terminal, readable at 80 columns."""

"""Reports as GitHub Markdown."""

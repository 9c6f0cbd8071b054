"""Scorers that reproduce how published tools read answers."""

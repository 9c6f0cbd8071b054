"""Extraction of the chosen option from a reply."""

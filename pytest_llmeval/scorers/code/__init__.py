"""Extraction of programs from replies."""

"""Patches that are scored by the tests of their instance (SWE-bench, Jimenez et al., 2024)."""

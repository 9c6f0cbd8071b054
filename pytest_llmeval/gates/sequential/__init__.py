"""Verdicts of a full run from a random part of its items, with a known probability of error.

The items of a benchmark are requested in a random order, in waves. After every complete wave each
gate is decided if the evidence in `metrics.sequential` suffices. This package imports numpy, so that
it is imported only for runs that stop early.
"""

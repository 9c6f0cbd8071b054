"""Logs of other evaluation harnesses as run folders: a reader per format, one ``Log``, one writer."""

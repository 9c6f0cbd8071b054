"""The run folder on disk: documents, records, locks, the response cache."""

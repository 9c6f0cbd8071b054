"""The engine behind ``hf:`` and ``demo``: choice log-likelihoods with transformers models."""

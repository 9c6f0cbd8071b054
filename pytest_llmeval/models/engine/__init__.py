"""The engine behind ``hf:`` and ``demo``: choices compared and text made with transformers."""

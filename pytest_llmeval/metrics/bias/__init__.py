"""Position and label bias: rates, and the audit over orders of the options."""

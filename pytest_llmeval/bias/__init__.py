"""The option-order experiment: other orders, content-free prompts, debiasing. Pure functions."""

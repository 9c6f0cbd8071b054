"""Other orders of options, prompts without content, and what takes position bias out again."""

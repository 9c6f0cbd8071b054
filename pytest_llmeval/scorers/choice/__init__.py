"""The option that a reply settles on."""

"""Code in replies: found, completed, and put into a program."""

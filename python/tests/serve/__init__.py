"""A package: its modules have names of their own beside those of the folder above."""
